import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { type Call, type History, newHistory } from './history/history.ts'
import { type Person, playPerson, type Scene } from './load/person.ts'
import { createPlatform } from './load/platform.ts'
import { settle } from './load/settle.ts'
import { startSubscriber } from './load/subscriber.ts'
import { type LoadTenant, makeTenants } from './load/tenants.ts'
import { type Arena, openArena } from './nemesis/arena.ts'
import { type Aim, faults } from './nemesis/faults.ts'
import { randomOf } from './random.ts'

let arena: Arena | undefined
let subscriber: Awaited<ReturnType<typeof startSubscriber>>
beforeAll(async () => {
  arena = await openArena('gateway=2')
}, 180_000)
beforeEach(({ skip }) => skip(!arena, 'The servers run in containers.'))
afterEach(() => subscriber?.close())
afterAll(() => arena?.remove(), 60_000)

const aim: Aim = { service: 'directory', instance: 0, server: 'nats', forMs: 3_000 }

/** Two organizations at work, while something is done to them; answers what came of it. */
async function live(
  seconds: number,
  harm: (fault: (name: string) => Promise<unknown>, tenant: LoadTenant) => Promise<void>,
) {
  const history = newHistory()
  subscriber = await startSubscriber(history)
  if (!arena) throw new Error('There is nothing to break.')
  const place = arena
  const { stack } = place
  const platform = createPlatform(stack.read().simulator_url)
  const tenants = await makeTenants({ stack, history, platform, subscriber }, 2, 1)
  const [tenant] = tenants
  if (!tenant) throw new Error('There is no tenant.')
  const endsAt = Date.now() + seconds * 1_000
  const scene: Scene = { seed: 1, history, platform, tenants, isOver: () => Date.now() > endsAt }
  const fault = async (name: string) => faults[name]?.({ arena: place, platform, subscriber }, aim)
  const playing = tenants.flatMap((one) => [0, 1, 2].map((n) => playPerson(scene, one, one.phones[0] ?? '', n)))
  const [people] = await Promise.all([Promise.all(playing), sleep(2_000).then(() => harm(fault, tenant))])
  return { scene, history, people }
}

const expectLawful = async ({ scene, people }: { scene: Scene; people: Person[] }) =>
  expect(await settle(scene, people, 120_000)).toEqual([])

const troubled = ({ calls }: History) => calls.filter(({ status }) => status === null || status >= 500)

test('without Redis, or with an empty or a silent one, every request is answered', async () => {
  const lived = await live(14, async (fault) => {
    for (const name of ['flush redis', 'kill redis', 'freeze redis']) {
      await fault(name)
      await sleep(2_000)
    }
  })
  expect(troubled(lived.history)).toEqual([])
  await expectLawful(lived)
})

/** Asks for contacts until the answer is a success; answers the requests that were none, and when the success came. */
async function untilBack({ client, phones }: LoadTenant) {
  const random = randomOf(0, 'back')
  const failed: Call[] = []
  for (;;) {
    const call = await client.once(random, 'GET', `/${phones[0]}/contacts`)
    if (call.status === 200) return { failed, at: call.endedAt }
    failed.push(call)
    await sleep(20)
  }
}

test('nats-server killed again and again: 503 with Retry-After meanwhile, back within 3 s, nothing lost', async () => {
  const pauses: number[] = []
  const failed: Call[] = []
  const lived = await live(20, async (fault, tenant) => {
    for (let turn = 0; turn < 3; turn++) {
      const killedAt = Date.now()
      await fault('kill nats')
      // The process is gone, but its port may not know it yet.
      await sleep(50)
      const back = await untilBack(tenant)
      pauses.push(back.at - killedAt)
      failed.push(...back.failed)
      await sleep(4_000)
    }
  })
  console.log(`Back after ${pauses.join(', ')} ms`)
  expect(failed.length).toBeGreaterThan(0)
  expect(failed.map(({ status, retryAfter }) => `${status} ${retryAfter !== null}`)).toEqual(
    failed.map(() => '503 true'),
  )
  expect(Math.max(...pauses)).toBeLessThan(3_000)
  await expectLawful(lived)
})

test('a service of which nothing runs: 503 at once for its routes, the others go on', async () => {
  const lived = await live(10, async (fault, { client, phones }) => {
    const random = randomOf(0, 'alone')
    await fault('kill a whole service')
    await sleep(100)
    const [contacts, messages] = await Promise.all(
      ['contacts', 'messages'].map((what) => client.once(random, 'GET', `/${phones[0]}/${what}`)),
    )
    expect(contacts).toMatchObject({ status: 503, retryAfter: expect.any(String) })
    // 50 ms are promised; a busy machine is given more.
    expect((contacts?.endedAt ?? 0) - (contacts?.startedAt ?? 0)).toBeLessThan(500)
    expect(messages).toMatchObject({ status: 200 })
  })
  await expectLawful(lived)
})

test('the event stream deleted under load: it is made anew, and every event is delivered', async () => {
  await expectLawful(await live(12, async (fault) => void (await fault('delete the event stream'))))
})
