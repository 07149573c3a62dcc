import { spawnSync } from 'node:child_process'
import { rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { postgres } from '@app/deploy/servers/postgres.ts'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { ofEach } from '../../journeys/start-stack.ts'
import { type Call, hasFailed } from '../history/history.ts'
import { live, type Lived } from '../load/live.ts'
import { settle } from '../load/settle.ts'
import type { Subscriber } from '../load/subscriber.ts'
import { type Arena, openArena } from '../nemesis/arena.ts'
import { mountSmallDisk, type SmallDisk } from '../nemesis/small-disk.ts'
import { switchLog } from '../nemesis/superuser.ts'
import { randomOf } from '../random.ts'
import { until } from '../../journeys/client.ts'
import { busiest, countLines } from './logs.ts'

interface Disks {
  data: SmallDisk
  log: SmallDisk
  streams: SmallDisk
}

const fullMs = 25_000
/** Of what a process writes of its own accord while it waits. */
const mostLinesASecond = 5
const replicas = ofEach(2)

let disks: Disks | undefined
let arena: Arena | undefined
let subscriber: Subscriber | undefined
beforeAll(async () => {
  arena = await openArena(replicas, {
    prepare(servers) {
      const [data, log, streams] = [
        mountSmallDisk(join(servers, 'postgres'), 400),
        mountSmallDisk(join(servers, 'wal'), 400),
        mountSmallDisk(join(servers, 'nats'), 128),
      ]
      if (data && log && streams) disks = { data, log, streams }
      return () => [data, log, streams].forEach((disk) => disk?.unmount())
    },
  })
  if (arena && disks) await moveLog(arena)
})
beforeEach(({ skip }) => skip(!arena || !disks, 'Only root on Linux may mount a small disk.'))
afterEach(() => subscriber?.close())
afterAll(() => arena?.remove())

/** Postgres's write-ahead log goes to a disk of its own, so that one of both can be full. */
async function moveLog({ folder, servers }: Arena) {
  const { process } = servers.postgres
  const [from, to] = [join(folder, 'servers/postgres/data/pg_wal'), join(folder, 'servers/wal/pg_wal')]
  await process.stop()
  expect(spawnSync('cp', ['--archive', from, to]).status).toBe(0)
  rmSync(from, { recursive: true })
  symlinkSync(to, from)
  process.start()
  await until(() => postgres.check(servers.postgres.url), 30_000)
}

interface Story extends Lived {
  /** What was asked while the disk was full. */
  reads: Call[]
  writes: Call[]
  /** From the moment when there was room again to a send that was accepted, and to a webhook of a send. */
  acceptedMs: number
  toldMs: number
}

/** Two organizations at work while the disk fills up, is full, and has room again. */
async function tell(which: keyof Disks): Promise<Story> {
  const [place, disk] = [arena, disks?.[which]]
  if (!place || !disk) throw new Error('There is nothing to fill.')
  const told = { from: 0, freed: 0, acceptedMs: 0, toldMs: 0 }
  const life = await live(place, { peopleOfNumber: 6 }, async ({ history, tenant }) => {
    await sleep(3_000)
    const before = countLines(place)
    told.from = Date.now()
    disk.fill()
    const random = randomOf(1, 'reader')
    while (Date.now() - told.from < fullMs) {
      for (const what of ['contacts', 'messages', 'conversations']) {
        history.calls.push(await tenant.client.once(random, 'GET', `/${tenant.phones[0]}/${what}?limit=5`))
      }
      if (which === 'log') await switchLog(place.servers.postgres.url)
      await sleep(100)
    }
    const most = busiest(place, before, fullMs / 1_000)
    disk.free()
    told.freed = Date.now()
    const isNew = ({ startedAt }: { startedAt: number }) => startedAt > told.freed
    const fresh = await untilTrue(() => history.accepted.find(isNew))
    told.acceptedMs = fresh.acceptedAt - told.freed
    await untilTrue(() => history.deliveries.find(({ eventId }) => eventId === `${fresh.id}:sent`))
    told.toldMs = Date.now() - told.freed
    await sleep(3_000)
    console.log(`${which}: ${JSON.stringify(told)}, ${most.rate.toFixed(1)} lines a second of ${most.file}`)
    expect(most.rate).toBeLessThan(mostLinesASecond)
  })
  subscriber = life.subscriber
  const full = life.scene.history.calls.filter(({ startedAt }) => startedAt > told.from && startedAt < told.freed)
  const { reads = [], writes = [] } = Object.groupBy(full, ({ method }) => (method === 'GET' ? 'reads' : 'writes'))
  console.log(`reads: ${statusesOf(reads)}; writes: ${statusesOf(writes)}`)
  return { ...life, ...told, reads, writes }
}

const statusesOf = (calls: Call[]) =>
  Object.entries(Object.groupBy(calls, ({ status }) => String(status)))
    .map(([status, some]) => `${status} ${some?.length}`)
    .join(', ')

async function untilTrue<T>(find: () => T | undefined): Promise<T> {
  for (const endsAt = Date.now() + 60_000; Date.now() < endsAt; await sleep(20)) {
    const found = find()
    if (found) return found
  }
  throw new Error('It did not come back within a minute.')
}

/** 500s and 503s without `Retry-After` break a law, as does a send that is lost or goes out twice. */
const expectLawful = async ({ scene, people }: Lived) => expect(await settle(scene, people, 240_000)).toEqual([])

test('Postgres without room for data: what must be written is refused for the moment, what is only read is answered', async () => {
  const story = await tell('data')
  expect(story.writes.filter(({ status }) => status === 503).length).toBeGreaterThan(0)
  // 404: who asks for what is another's.
  expect(story.reads.filter(({ status }) => status !== 200 && status !== 404)).toEqual([])
  expect(story.acceptedMs).toBeLessThan(5_000)
  await expectLawful(story)
})

test('Postgres without room for its log, which ends it: 503, and back by itself', async () => {
  const story = await tell('log')
  expect(story.writes.filter(({ status }) => status === 503).length).toBeGreaterThan(0)
  expect(story.acceptedMs).toBeLessThan(15_000)
  await expectLawful(story)
})

test('JetStream without room: all is answered and sent meanwhile, and told when there is room again, by itself', async () => {
  const story = await tell('streams')
  const refused = [...story.reads, ...story.writes].filter(hasFailed)
  expect(refused).toEqual([])
  expect(story.toldMs).toBeLessThan(30_000)
  await expectLawful(story)
})
