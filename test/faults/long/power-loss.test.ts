import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ServerName } from '@app/deploy/servers/kind.ts'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { ofEach } from '../../journeys/start-stack.ts'
import { live } from '../load/live.ts'
import { settle } from '../load/settle.ts'
import type { Subscriber } from '../load/subscriber.ts'
import { untilBack } from '../load/until-back.ts'
import { type Arena, openArena } from '../nemesis/arena.ts'
import { type LossyDisk, mountLossyDisk } from '../nemesis/lossy-disk.ts'

const servers: ServerName[] = ['postgres', 'nats', 'redis']
const replicas = ofEach(2)

const disks = new Map<ServerName, LossyDisk>()
let arena: Arena | undefined
let subscriber: Subscriber | undefined
beforeAll(async () => {
  arena = await openArena(replicas, {
    prepare(folder) {
      for (const name of servers) {
        const disk = mountLossyDisk(join(folder, name), 1_000)
        if (disk) disks.set(name, disk)
      }
      return () => Promise.all([...disks.values()].map((disk) => disk.unmount()))
    },
  })
}, 240_000)
beforeEach(({ skip }) =>
  skip(!arena || disks.size < servers.length, 'Only root on Linux may mount a disk that can lose power.'),
)
afterEach(() => subscriber?.close())
afterAll(() => arena?.remove(), 60_000)

/** Disks and processes are gone in one moment; what the disks have kept is what the processes find a little later. */
async function losePower(place: Arena, names: ServerName[]) {
  for (const name of names) disks.get(name)?.lose()
  const processes = names.map((name) => place.servers[name].process)
  for (const process of processes) kill(process.pid())
  await Promise.all(processes.map((process) => process.stop()))
  for (const name of names) await disks.get(name)?.restore()
  await sleep(1_000)
  for (const process of processes) process.start()
}

/** With what it has started itself. */
function kill(pid: number | undefined) {
  if (pid !== undefined) process.kill(-pid, 'SIGKILL')
}

test.each([
  ['Postgres', ['postgres']],
  ['nats-server', ['nats']],
  ['all servers at once', servers],
] satisfies [string, ServerName[]][])(
  'a loss of power, again and again: nothing is lost, sent twice or out of order: %s',
  { timeout: 600_000 },
  async (_, names) => {
    const place = arena
    if (!place) throw new Error('There is nothing that could lose power.')
    const backMs: number[] = []
    const life = await live(place, { seconds: 20 }, async ({ tenant }) => {
      for (let turn = 0; turn < 4; turn++) {
        await sleep(1_000 + Math.random() * 2_000)
        // So that not all is lost that nobody has forced onto the disk, but its end.
        for (const name of names) disks.get(name)?.flush()
        await sleep(200 + Math.random() * 2_000)
        const lostAt = Date.now()
        await losePower(place, names)
        backMs.push((await untilBack(tenant)).at - lostAt)
      }
    })
    subscriber = life.subscriber
    console.log(`Back after ${backMs.join(', ')} ms`)
    expect(await settle(life.scene, life.people, 240_000)).toEqual([])
  },
)
