import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, expect, onTestFinished, test } from 'vitest'
import { until } from '../../until.ts'
import { type StartedStack, startStack } from '../../journeys/start-stack.ts'
import { newHistory } from '../history/history.ts'
import { passPark } from '../load/pass-park.ts'
import { meetPerson, type Person, type Scene, send } from '../load/person.ts'
import { createPlatform, type Platform } from '../load/platform.ts'
import { settle } from '../load/settle.ts'
import { startSubscriber } from '../load/subscriber.ts'
import { makeTenants } from '../load/tenants.ts'

let stack: StartedStack
let platform: Platform
let subscriber: Awaited<ReturnType<typeof startSubscriber>>
let history: Scene['history']

beforeAll(async () => {
  stack = await startStack(['--replicas', 'messaging=3'])
  platform = createPlatform(stack.read().simulator_url)
})
afterEach(() => subscriber?.close())
afterAll(() => stack?.remove())

/** An organization with numbers of its own, and a history that begins here. */
async function newScene(numbers: number) {
  history = newHistory()
  subscriber = await startSubscriber(history)
  const tenants = await makeTenants({ stack, history, platform, subscriber }, 1, numbers)
  const [tenant] = tenants
  if (!tenant) throw new Error('There is no tenant.')
  const scene: Scene = { seed: Math.random(), history, platform, tenants, isOver: () => true }
  return { scene, tenant, phone: tenant.phones[0] ?? '' }
}

const meetMany = (count: number, { scene, tenant, phone }: Awaited<ReturnType<typeof newScene>>) =>
  Promise.all(Array.from({ length: count }, (_, n) => meetPerson(scene, tenant, phone, n)))

const read = async ({ tenant, phone, random }: Person, id: string) =>
  tenant.client.data(random, 'GET', `/${phone}/messages/${id}`)
const upstreamOf = async ({ phone }: Person, id: string) =>
  (await platform.sent(phone)).filter(({ messageId }) => messageId === id)
const toldOf = (eventId: string) => history.deliveries.filter((delivery) => delivery.eventId === eventId)

const silence = { kind: 'timeout_after_accept', ms: 500 }

test('a number that is throttled to 1 a second does not move the latency of 50 healthy ones', async () => {
  const { scene, tenant, phone } = await newScene(51)
  const [throttled, ...healthy] = await Promise.all(tenant.phones.map((own) => meetPerson(scene, tenant, own, 0)))
  if (!throttled) throw new Error('There is no number.')
  const more = await Promise.all([1, 2, 3, 4, 5, 6, 7].map((n) => meetPerson(scene, tenant, phone, n)))

  await latenciesOf(healthy)
  const quiet = await latenciesOf(healthy)
  // Each refusal makes the number wait a second.
  await platform.layFault({ path: `/${phone}/messages` }, { kind: 'error', code: 130429 }, 1_000)
  const queued = await Promise.all([throttled, ...more].flatMap((person) => [send(person), send(person), send(person)]))
  const beside = await latenciesOf(healthy)

  const waiting = await Promise.all(queued.map((id) => read(throttled, id)))
  expect(waiting.map(({ status }) => status)).toEqual(queued.map(() => 'pending'))
  console.log(`Latency of healthy numbers: ${shown(quiet)} before, ${shown(beside)} beside a throttled one`)
  // What is held up by the throttled number is held up for its second.
  expect(quantile(beside, 0.5)).toBeLessThan(quantile(quiet, 0.5) + 50)
  expect(quantile(beside, 0.95)).toBeLessThan(quantile(quiet, 0.95) + 400)
  await platform.clearFaults()
  await until(async () => expect(await platform.sent(phone)).toHaveLength(queued.length), 60_000)
})

/** From the request's begin to the platform, in milliseconds: three sends of each, spread over some seconds. */
async function latenciesOf(people: Person[]) {
  const ids = await Promise.all(
    people.map(async (person, n) => {
      const own: string[] = []
      for (let turn = 0; turn < 3; turn++) {
        await sleep(turn === 0 ? n * 20 : 1_000)
        own.push(await send(person))
      }
      return own
    }),
  )
  const startedAt = new Map(history.accepted.map((one) => [one.id, one.startedAt]))
  return until(async () => {
    const sent = (await Promise.all(people.map(({ phone }) => platform.sent(phone)))).flat()
    const wanted = new Set(ids.flat())
    const arrived = sent.filter(({ messageId }) => wanted.has(messageId))
    expect(arrived).toHaveLength(wanted.size)
    return arrived.map(({ messageId, at }) => at - (startedAt.get(messageId) ?? 0)).toSorted((a, b) => a - b)
  })
}

const quantile = (sorted: number[], share: number) => sorted[Math.floor(sorted.length * share)] ?? 0
const shown = (sorted: number[]) => `p50 ${quantile(sorted, 0.5)} ms, p95 ${quantile(sorted, 0.95)} ms`

test('a timeout after the acceptance ends `sent` through the callback, and is never sent twice', async () => {
  const scene = await newScene(1)
  const people = await meetMany(1, scene)
  const [person] = people
  if (!person) throw new Error('There is nobody.')
  await platform.layFault({ to: person.number }, silence, 1)
  const id = await send(person)
  await until(async () => expect(await read(person, id)).toMatchObject({ status: 'read' }))
  expect(await settle(scene.scene, people, 30_000)).toEqual([])
  expect(await upstreamOf(person, id)).toHaveLength(1)
  expect(toldOf(`${id}:sent`).length).toBeGreaterThan(0)
})

test('without a callback it ends `failed`, `delivery_unknown`, with -1 in the event, and is never sent twice', async () => {
  const [person] = await meetMany(1, await newScene(1))
  if (!person) throw new Error('There is nobody.')
  await platform.layFault({ to: person.number }, silence, 1)
  await platform.set({ statuses: [] })
  onTestFinished(() => platform.set({ statuses: ['sent', 'delivered', 'read'] }))
  const id = await send(person)
  await passPark(stack.read().postgres_url, id)
  await until(async () => {
    expect(await read(person, id)).toMatchObject({
      status: 'failed',
      error: { code: 'delivery_unknown', provider_code: null },
    })
  })
  await until(() => expect(toldOf(`${id}:failed`).length).toBeGreaterThan(0))
  const [status] = JSON.parse(toldOf(`${id}:failed`)[0]?.raw ?? '').entry[0].changes[0].value.statuses
  expect(status).toMatchObject({ id, status: 'failed', errors: [{ code: -1 }] })
  expect(toldOf(`${id}:sent`)).toEqual([])
  expect(await upstreamOf(person, id)).toHaveLength(1)
})

test('order within a conversation holds through retries, with three messaging instances killed in turn', async () => {
  const scene = await newScene(1)
  const people = await meetMany(8, scene)
  const sending = people.map(async (person, n) => {
    await platform.layFault({ to: person.number }, { kind: 'error', code: 131016 }, 1 + (n % 2))
    for (let turn = 0; turn < 8; turn++) {
      await send(person)
      await sleep(400)
    }
  })
  for (const instance of [0, 1, 2]) {
    await sleep(800)
    const pid = stack.read().services['messaging']?.[instance]?.pid
    if (pid) process.kill(pid, 'SIGKILL')
  }
  await Promise.all(sending)
  expect(await settle(scene.scene, people, 150_000)).toEqual([])
  expect(history.accepted).toHaveLength(64)
  expect(history.upstream.length).toBeGreaterThan(32)
})
