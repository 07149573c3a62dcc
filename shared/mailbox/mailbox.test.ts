import { setTimeout as sleep } from 'node:timers/promises'
import { untilSomebodyWaits, untilWaitedFor } from '@app/test/lock-waits.ts'
import type { TestService } from '@app/test/service.ts'
import { beforeAll, expect, test, vi } from 'vitest'
import type { TransactionSql } from '../database/database.ts'
import { type Lane, laneColumns, lockLanes, releaseLanes, renewLanes } from './lanes.ts'
import type { TurningOptions } from './mailbox.ts'
import { countMost, type Item, settleTrial, trialMailboxes } from './testing/trial-mailboxes.ts'

let app: TestService
const trial = trialMailboxes()
const { add, start, untilEmpty, pollLate, stopAll } = trial
beforeAll(() => void ({ app } = trial))

test.each([true, false])('three holders work each lane in order and one at a time (refill %s)', async (refill) => {
  const seen = new Map<string, number[]>()
  let inWork = 0
  const busy = new Map<string, number>()
  const work = async ({ laneId, seq }: Item) => {
    busy.set(laneId, (busy.get(laneId) ?? 0) + 1)
    inWork = Math.max(inWork, busy.get(laneId) ?? 0)
    await sleep(Math.random() * 3)
    seen.set(laneId, [...(seen.get(laneId) ?? []), Number(seq)])
    busy.set(laneId, (busy.get(laneId) ?? 0) - 1)
  }
  // Without refill a lane that has more says so at its release.
  const settle: TurningOptions<Item, true>['settle'] = async (tx, done, lock) => {
    await settleTrial(tx, done, lock)
    return done.map(({ item }) => ({ laneId: item.laneId, waitMs: refill ? null : 0 }))
  }
  for (let n = 0; n < 3; n++) start(work, { refill, settle })
  await Promise.all(Array.from({ length: 30 }, (_, n) => add(`lane${n}`, `group${n % 4}`, 5)))
  await Promise.all(Array.from({ length: 30 }, (_, n) => add(`lane${n}`, `group${n % 4}`, 5)))
  await untilEmpty()
  await stopAll()
  expect(inWork).toBe(1)
  expect([...seen.values()].every((seqs) => seqs.length === 10)).toBe(true)
  for (const seqs of seen.values()) expect(seqs).toEqual(seqs.toSorted((a, b) => a - b))
  const held = await app.sql`select id from trial_lanes where held_until > now()`
  expect(held).toHaveLength(0)
})

test('a lane takes as many items at once as its capacity, over all holders', async () => {
  const counted = countMost(5)
  for (let n = 0; n < 2; n++) start(counted.work, { capacity: () => 3 })
  await add('wide', 'group', 60)
  await untilEmpty()
  await stopAll()
  expect(counted.most).toBe(3)
})

test('what arrives while its lane is given back is not left asleep', async () => {
  start(() => Promise.resolve())
  for (let n = 0; n < 100; n++) await add('busy', 'group', 1)
  await untilEmpty(3_000)
  await stopAll()
})

test('what arrives while its lane is held is not left asleep when the lane is given back', async () => {
  const first = Promise.withResolvers<void>()
  let begun = 0
  start(() => (++begun === 1 ? first.promise : Promise.resolve()), { refill: false })
  await add('held', 'group', 1)
  await vi.waitFor(() => expect(begun).toBe(1), { timeout: 5_000 })
  await add('held', 'group', 1)
  first.resolve()
  await untilEmpty(3_000)
  await stopAll()
})

test('a lane that another holder has taken over is left to that one: it is neither given back nor worked on', async () => {
  const hanging = Promise.withResolvers<void>()
  const seen: string[] = []
  const work = async ({ seq }: Item) => {
    seen.push(seq)
    await hanging.promise
  }
  start(work, { leaseMs: 600 })
  await add('taken', 'group', 2)
  await vi.waitFor(() => expect(seen).toHaveLength(1), { timeout: 5_000 })
  await app.sql`update trial_lanes set held_until = now() + interval '1 hour'`
  // By then it was to be renewed.
  await sleep(500)
  hanging.resolve()
  await vi.waitFor(async () => expect(await app.sql`select begun from trial_items`).toEqual([{ begun: false }]))
  await stopAll()
  expect(seen).toHaveLength(1)
  expect(await app.sql`select held_until > now() + interval '50 minutes' as is_held from trial_lanes`).toEqual([
    { isHeld: true },
  ])
})

test('a lane that somebody takes over just while it is given back is left to that one', async () => {
  await app.sql`insert into trial_lanes (id, grp, held_until) values ('taken', 'group', now())`
  const lanes = await app.sql<Lane[]>`select ${laneColumns(app.sql, 'l')} from trial_lanes l`
  const taken = Promise.withResolvers<void>()
  const taking = app.sql.begin(async (tx) => {
    await tx`update trial_lanes set held_until = now() + interval '1 hour'`
    taken.resolve()
    await untilSomebodyWaits(app.sql)
  })
  await taken.promise
  await app.sql.begin((tx) =>
    releaseLanes(
      tx,
      'trial_lanes',
      lanes.map((lane) => ({ lane, waitMs: null })),
    ),
  )
  await taking
  expect(await app.sql`select held_until > now() as is_held from trial_lanes`).toEqual([{ isHeld: true }])
})

test.each([
  [
    'given back',
    (tx, lanes) =>
      releaseLanes(
        tx,
        'trial_lanes',
        lanes.map((lane) => ({ lane, waitMs: null })),
      ),
  ],
  ['renewed', (tx, lanes) => renewLanes(tx, 'trial_lanes', 1_000, lanes)],
  ['locked', (tx, lanes) => lockLanes(tx, 'trial_lanes', lanes)],
] satisfies [string, (tx: TransactionSql, lanes: Lane[]) => Promise<unknown>][])(
  'lanes that are %s are locked one after the other in the order of their ids, so that nobody waits in a circle',
  async (_, act) => {
    await app.sql`insert into trial_lanes (id, grp, held_until) select id, 'group', now() from unnest(array['a', 'b']) id`
    const lanes = await app.sql<Lane[]>`select ${laneColumns(app.sql, 'l')} from trial_lanes l order by id desc`
    const isLocked = Promise.withResolvers<void>()
    const holding = app.sql.begin(async (tx) => {
      await tx`select from trial_lanes where id = 'a' for update`
      isLocked.resolve()
      await untilWaitedFor(app.sql, tx)
      return tx`select id from trial_lanes order by id for update skip locked`
    })
    await isLocked.promise
    await app.sql.begin(async (tx) => void (await act(tx, lanes)))
    expect([...(await holding)]).toEqual([{ id: 'a' }, { id: 'b' }])
  },
)

test('of lanes that are given back it is told whether one is due at once; those that stay held do not count', async () => {
  await app.sql`
    insert into trial_lanes (id, grp, due_at, held_until)
    select id, 'group', now(), now() + interval '1 hour' from unnest(array['held', 'left']) id
  `
  const [held, left] = await app.sql<Lane[]>`select ${laneColumns(app.sql, 'l')} from trial_lanes l order by id`
  if (!held || !left) throw new Error('it has no lanes')
  const give = (waitMs: number) =>
    app.sql.begin((tx) => releaseLanes(tx, 'trial_lanes', [{ lane: left, waitMs }], [{ lane: held, failures: 1 }]))
  expect(await give(60_000)).toBe(false)
  await app.sql`update trial_lanes set held_until = ${left.heldUntil}::text::timestamptz where id = 'left'`
  expect(await give(0)).toBe(true)
})

test('what arrives in a lane while all slots are taken begins when one is free, though what was begun before goes on', async () => {
  const begun: string[] = []
  const ends = ['long', 'other'].map(() => Promise.withResolvers<void>())
  const work = ({ laneId }: Item) => ends[begun.push(laneId) - 1]?.promise ?? Promise.resolve()
  start(work, { slots: 2, capacity: () => 2 })
  for (const [n, lane] of ['long', 'other'].entries()) {
    await add(lane, lane, 1)
    await vi.waitFor(() => expect(begun).toHaveLength(n + 1), { timeout: 5_000 })
  }
  await add('long', 'long', 1)
  await sleep(300)
  ends[1]?.resolve()
  await vi.waitFor(() => expect(begun).toEqual(['long', 'other', 'long']), { timeout: 5_000 })
  ends[0]?.resolve()
  await untilEmpty()
  await stopAll()
})

test('what a lane waits for when it is given back stands in its row', async () => {
  const read = () => app.sql`
    select id, extract(epoch from due_at - now())::int as due_s, extract(epoch from nullif(paced_until, '-infinity') - now())::int as paced_s
    from trial_lanes where held_until < now() and due_at > now() order by id
  `
  const near = (seconds: number) => expect.toSatisfy((value: number) => value > seconds - 10 && value <= seconds)
  start(() => Promise.resolve(), {
    settle: async (tx, done, lockLanes) => {
      await settleTrial(tx, done, lockLanes)
      return done.flatMap(({ item: { laneId } }) =>
        laneId === 'told'
          ? [
              { laneId, waitMs: 60_000 },
              { laneId, pacedMs: 90_000 },
            ]
          : [],
      )
    },
    nextDue: async (_tx, laneIds) => laneIds.map((laneId) => ({ laneId, waitMs: 120_000 })),
  })
  await add('next', 'group', 1)
  await add('told', 'group', 2)
  await vi.waitFor(async () => expect(await read()).toHaveLength(2), { timeout: 5_000 })
  await stopAll()
  expect(await app.sql`select lane, begun from trial_items`).toEqual([{ lane: 'told', begun: false }])
  expect(await read()).toEqual([
    { id: 'next', dueS: near(120), pacedS: null },
    { id: 'told', dueS: near(60), pacedS: near(90) },
  ])
})

test('a lane that has more when its holder stops is due at once, though nobody says when its next item is', async () => {
  const { promise: goOn, resolve: end } = Promise.withResolvers<void>()
  let begun = 0
  start(
    () => {
      begun++
      return goOn
    },
    { nextDue: () => Promise.resolve([]) },
  )
  await add('lane', 'group', 2)
  await vi.waitFor(() => expect(begun).toBe(1), { timeout: 5_000 })
  const stopped = stopAll()
  end()
  await stopped
  expect(await app.sql`select due_at <= now() as due from trial_lanes`).toEqual([{ due: true }])
})

test('a lane waits as the first of its items said, though others in work say nothing, and more came', async () => {
  const ends = [1, 2].map(() => Promise.withResolvers<void>())
  const begun: string[] = []
  start(({ seq }) => ends[begun.push(seq) - 1]?.promise ?? Promise.resolve(), {
    capacity: () => 2,
    settle: async (tx, done, lockLanes) => {
      await settleTrial(tx, done, lockLanes)
      return done.flatMap(({ item: { seq, laneId } }) => (seq === begun[0] ? [{ laneId, waitMs: 60_000 }] : []))
    },
  })
  await add('lane', 'group', 2)
  await vi.waitFor(() => expect(begun).toHaveLength(2), { timeout: 5_000 })
  await add('lane', 'group', 1)
  for (const [n, { resolve }] of ends.entries()) {
    resolve()
    await vi.waitFor(async () => expect(await app.sql`select from trial_items`).toHaveLength(2 - n), { timeout: 5_000 })
  }
  await stopAll()
  expect(begun).toHaveLength(2)
  expect(await app.sql`select due_at > now() + interval '50 s' as waits from trial_lanes`).toEqual([{ waits: true }])
})

test('what a lane has left when its holder stops is due at once for another one', async () => {
  const first = Promise.withResolvers<void>()
  let begun = 0
  start(() => (begun++, first.promise))
  await add('left', 'group', 2)
  await vi.waitFor(() => expect(begun).toBe(1), { timeout: 5_000 })
  const stopped = stopAll()
  first.resolve()
  await stopped
  expect(await app.sql`select begun from trial_items`).toEqual([{ begun: false }])
  expect(await app.sql`select due_at <= now() and held_until < now() as is_due from trial_lanes`).toEqual([
    { isDue: true },
  ])
})

test('who works on the next item of a lane knows the failures with which the one before was recorded', async () => {
  const known: number[] = []
  start(() => Promise.resolve(), {
    work: async (_item, lane) => {
      known.push(lane.failures)
      return true
    },
    settle: async (tx, done, lockLanes) => {
      await settleTrial(tx, done, lockLanes)
      return done.map(({ item: { laneId }, lane }) => ({ laneId, waitMs: null, failures: lane.failures + 1 }))
    },
  })
  await add('failing', 'group', 3)
  await untilEmpty()
  await stopAll()
  expect(known).toEqual([0, 1, 2])
  expect(await app.sql`select failures from trial_lanes`).toEqual([{ failures: 3 }])
})

test('a lane that is given back without a word of its failures and its pace keeps both', async () => {
  await app.sql`
    insert into trial_lanes (id, grp, held_until, failures, paced_until)
    values ('kept', 'group', now() + interval '1 hour', 3, now() + interval '1 hour')
  `
  const [lane] = await app.sql<Lane[]>`select ${laneColumns(app.sql, 'l')} from trial_lanes l`
  await app.sql.begin((tx) => releaseLanes(tx, 'trial_lanes', lane ? [{ lane, waitMs: null }] : []))
  const [row] = await app.sql`
    select failures, held_until < now() as is_free, paced_until > now() + interval '50 minutes' as is_paced from trial_lanes
  `
  expect(row).toEqual({ failures: 3, isFree: true, isPaced: true })
})

test.each([true, false])(
  'what came since the claim ends the wait of a lane where that is said (%s)',
  async (untilArrival) => {
    await app.sql`insert into trial_lanes (id, grp, held_until, arrivals) values ('came', 'group', now() + interval '1 hour', 2)`
    const [lane] = await app.sql<Lane[]>`select ${laneColumns(app.sql, 'l')} from trial_lanes l`
    const releases = lane ? [{ lane: { ...lane, arrivals: '1' }, waitMs: 60_000, untilArrival }] : []
    expect(await app.sql.begin((tx) => releaseLanes(tx, 'trial_lanes', releases))).toBe(untilArrival)
  },
)

test('a lane that is due when it is given back is claimed at once, and not at the next poll', async () => {
  pollLate()
  start(() => Promise.resolve(), {
    refill: false,
    settle: async (tx, done, lockLanes) => {
      await settleTrial(tx, done, lockLanes)
      return done.map(({ item: { laneId } }) => ({ laneId, waitMs: 0 }))
    },
  })
  await add('due', 'group', 3)
  await untilEmpty(8_000)
})
