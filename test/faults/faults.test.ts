import { randomInt } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ofEach } from '../journeys/start-stack.ts'
import { awake } from './history/awake.ts'
import { newHistory } from './history/history.ts'
import { playCustomers } from './load/customer.ts'
import { redriveAll } from './load/redrive.ts'
import { playRestless } from './load/restless.ts'
import { settle } from './load/settle.ts'
import { playPerson, type Scene } from './load/person.ts'
import { createPlatform } from './load/platform.ts'
import { startSubscriber } from './load/subscriber.ts'
import { makeTenants, subscribe } from './load/tenants.ts'
import { type Arena, openArena } from './nemesis/arena.ts'
import { haunt } from './nemesis/haunt.ts'

/** The whole of what the nemesis does, and all that is chosen at random, follows from the seed. CI judges a change, not a chance. */
const seed = Number(process.env['FAULTS_SEED'] || (process.env['CI'] ? 1 : randomInt(1_000_000)))
const seconds = Number(process.env['FAULTS_SECONDS'] || 60)
/** The longest wait between two attempts to send is 7 minutes and a fifth of it; it may have begun while Postgres's clock was 90 s ahead. */
const settleMs = 600_000
/** Nothing is broken any more when all is worked through again. */
const redriveMs = 60_000
/** A minute shares the machine with other tests; who gives it longer wants to see more. */
const isLong = seconds > 60
const peopleOfNumber = isLong ? 4 : 2
/** At a time. */
const customersOfTenant = isLong ? 2 : 1

const replicas = ofEach(2)
const say = (line: string) => console.log(line)
const history = newHistory()
let arena: Arena | undefined
let subscriber: Awaited<ReturnType<typeof startSubscriber>>
let isLawful = false

beforeAll(async () => {
  // A minute shares the machine, whose rules of the network are one for all.
  arena = await openArena(replicas, { losesPackets: isLong })
  subscriber = await startSubscriber(history)
}, 180_000)
afterAll(async () => {
  subscriber?.close()
  if (isLawful) return arena?.remove()
  await arena?.stop()
  const again = `npm run test:faults -- --only nemesis --seed ${seed} --seconds ${seconds}`
  if (arena) say(`Logs and the history are in ${arena.folder}. The same again: ${again}`)
}, 60_000)

test(
  `every law holds through ${seconds} s of faults (FAULTS_SEED=${seed})`,
  { timeout: seconds * 1_000 + settleMs + 2 * redriveMs + 240_000, retry: 0 },
  async ({ skip }) => {
    if (!arena) return skip('The servers run in containers.')
    const { folder, stack } = arena
    const platform = createPlatform(stack.read().simulator_url)
    const tenants = await makeTenants({ stack, history, platform, subscriber }, 2, 2)
    // By any clock that was put wrong.
    const beganAt = new Date(Date.now() - 120_000)
    const endsAt = Date.now() + seconds * 1_000
    const scene: Scene = { seed, history, platform, tenants, isOver: () => Date.now() > endsAt }
    say(`Faults: seed ${seed}, ${seconds} s`)
    if (!arena.postgresClock)
      say('The clock of Postgres stays right: libfaketime (apt-get install faketime) is missing.')
    if (!arena.wires) say('No packets get lost: that is for longer runs, as root, with nft (apt-get install nftables).')

    const playing = tenants.flatMap((tenant) =>
      tenant.phones.flatMap((phone) =>
        Array.from({ length: peopleOfNumber }, (_, n) => playPerson(scene, tenant, phone, n)),
      ),
    )
    const managing = tenants.flatMap((tenant) =>
      Array.from({ length: customersOfTenant }, (_, n) => playCustomers(scene, tenant, n)),
    )
    const restless = tenants.map((tenant) => playRestless(scene, tenant, subscriber))
    const late = Promise.all(
      tenants.map(async (tenant) => {
        await sleep(seconds * 300)
        await subscribe({ history, subscriber }, tenant, 'late', {})
      }),
    )
    const [people] = await Promise.all([
      Promise.all(playing),
      haunt({ arena, platform, subscriber }, seed, seconds, say),
      late,
      ...managing,
      ...restless,
    ])
    const asleep = awake(history)
    let breaches = await settle(scene, people, settleMs)
    say(summary())
    if (breaches.length === 0) {
      breaches = await redriveAll(stack.dataDir, beganAt, people, () => settle(scene, people, redriveMs))
    }
    breaches.push(...asleep)
    if (breaches.length > 0) writeFileSync(join(folder, 'history.json'), dump())
    await Promise.all(tenants.map(({ client }) => client.close()))
    expect(breaches, `FAULTS_SEED=${seed}`).toEqual([])
    isLawful = true
  },
)

function summary() {
  const { calls, accepted, upstream, deliveries, expected, readings, endings } = history
  const unknown = [...endings.values()].filter(({ code }) => code === 'delivery_unknown').length
  const statuses = Object.entries(Object.groupBy(calls, ({ status }) => String(status)))
  const answers = statuses.map(([status, some]) => `${status}: ${some?.length}`).join(', ')
  return (
    `${calls.length} calls (${answers}), ${accepted.length} sends accepted, ${upstream.length} upstream, ${unknown} unknown, ` +
    `${expected.length} events told in ${deliveries.length} deliveries, ${readings.length} readings`
  )
}

const dump = () => JSON.stringify(history, (_key, value: unknown) => (value instanceof Map ? [...value] : value), 1)
