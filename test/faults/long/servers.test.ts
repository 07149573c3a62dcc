import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { type Call, hasFailed, type History } from '../history/history.ts'
import { live, type Lived } from '../load/live.ts'
import { settle } from '../load/settle.ts'
import type { Subscriber } from '../load/subscriber.ts'
import type { LoadTenant } from '../load/tenants.ts'
import { untilBack } from '../load/until-back.ts'
import { type Arena, openArena } from '../nemesis/arena.ts'
import { type Aim, faultOf } from '../nemesis/faults.ts'
import { randomOf } from '../random.ts'

let arena: Arena | undefined
let subscriber: Subscriber | undefined
beforeAll(async () => {
  arena = await openArena('gateway=2')
}, 180_000)
beforeEach(({ skip }) => skip(!arena, 'The servers run in containers.'))
afterEach(() => subscriber?.close())
afterAll(() => arena?.remove(), 60_000)

const aim: Aim = { service: 'directory', instance: 0, server: 'nats', forMs: 3_000, skewMs: 90_000 }

/** Two organizations at work, while something is done to them; answers what came of it. */
async function lived(
  seconds: number,
  harm: (fault: (name: string) => Promise<unknown>, tenant: LoadTenant) => Promise<void>,
) {
  const place = arena
  if (!place) throw new Error('There is nothing to break.')
  const life = await live(place, { seconds }, async ({ platform, tenant, subscriber: listening }) => {
    await sleep(2_000)
    await harm((name) => faultOf(name)({ arena: place, platform, subscriber: listening }, aim), tenant)
  })
  subscriber = life.subscriber
  return life
}

const expectLawful = async ({ scene, people }: Lived) => expect(await settle(scene, people, 120_000)).toEqual([])

const troubled = ({ calls }: History) => calls.filter(hasFailed)

/** Most within 50 ms. A busy machine is given more for one of them. */
function expectRefusedAtOnce(calls: Call[]) {
  const took = calls.map(({ startedAt, endedAt }) => endedAt - startedAt).toSorted((a, b) => a - b)
  const [median = Infinity, worst = Infinity] = [took[Math.floor(took.length / 2)], took.at(-1)]
  console.log(`${calls.length} refused: p50 ${median} ms, at most ${worst} ms`)
  expect(calls.filter(({ status, retryAfter }) => status !== 503 || retryAfter === null)).toEqual([])
  expect(calls.length).toBeGreaterThan(5)
  expect(median).toBeLessThan(50)
  expect(worst).toBeLessThan(500)
}

test('without Redis, or with an empty or a silent one, every request is answered', async () => {
  const life = await lived(14, async (fault) => {
    for (const name of ['flush redis', 'kill redis', 'freeze redis']) {
      await fault(name)
      await sleep(2_000)
    }
  })
  expect(troubled(life.scene.history)).toEqual([])
  await expectLawful(life)
})

test('nats-server killed again and again: 503 with Retry-After meanwhile, back within 3 s, nothing lost', async () => {
  const pauses: number[] = []
  const failed: Call[] = []
  const life = await lived(20, async (fault, tenant) => {
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
  expectRefusedAtOnce(failed)
  expect(Math.max(...pauses)).toBeLessThan(3_000)
  await expectLawful(life)
})

test('a service of which nothing runs: 503 at once for its routes, the others go on', async () => {
  const refused: Call[] = []
  const life = await lived(10, async (fault, tenant) => {
    for (let turn = 0; turn < 2; turn++) {
      await fault('kill a whole service')
      await sleep(100)
      const [{ failed }, messages] = await Promise.all([
        untilBack(tenant),
        tenant.client.once(randomOf(0, 'alone'), 'GET', `/${tenant.phones[0]}/messages`),
      ])
      refused.push(...failed)
      expect(messages).toMatchObject({ status: 200 })
      await sleep(2_000)
    }
  })
  expectRefusedAtOnce(refused)
  await expectLawful(life)
})

test('the event stream deleted under load: it is made anew, and every event is delivered', async () => {
  await expectLawful(await lived(12, async (fault) => void (await fault('delete the event stream'))))
})
