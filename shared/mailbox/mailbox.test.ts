import { setTimeout as sleep } from 'node:timers/promises'
import { freezeFor } from '@app/test/freeze.ts'
import { untilSomebodyWaits } from '@app/test/lock-waits.ts'
import { testService, type TestService } from '@app/test/service.ts'
import { afterAll, afterEach, beforeAll, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import type { TransactionSql } from '../database/database.ts'
import { findDueGroups } from './claim-lanes.ts'
import { type Lane, laneColumns, releaseLanes } from './lanes.ts'
import { type Mailbox, startMailbox, type TurningOptions, type Want } from './mailbox.ts'

let app: TestService
const mailboxes: Mailbox[] = []

beforeAll(async () => {
  app = await testService('messaging')
  await app.sql`create table trial_lanes (like send_lanes including all)`
  await app.sql`create table trial_items (seq bigint generated always as identity, lane text, begun boolean default false)`
  await app.sql`create index on trial_items (lane, seq)`
  await app.sql`create table trial_pace (like pace including all)`
})
beforeEach(async () => {
  await app.sql`delete from trial_items`
  await app.sql`delete from trial_lanes`
  await app.sql`delete from trial_pace`
})
// One that failed leaves none to the next try, which would share its work with it.
afterEach(() => stopAll())
afterAll(() => app.close())

interface Item {
  laneId: string
  seq: string
  begun: boolean
}

async function add(lane: string, group: string, count: number) {
  await app.sql.begin(async (tx) => {
    await tx`insert into trial_items (lane) select ${lane} from generate_series(1, ${count}::int)`
    await tx`
      insert into trial_lanes as l (id, grp, due_at, arrivals) values (${lane}, ${group}, now(), 1)
      on conflict (id) do update set due_at = coalesce(l.due_at, now()), arrivals = l.arrivals + 1
    `
  })
  for (const mailbox of mailboxes) mailbox.wake()
}

/** Takes the first items of each lane that are not in work here. */
async function take(tx: TransactionSql, wants: Want[]): Promise<Item[]> {
  const taken: Item[] = []
  for (const { lane, free } of wants) {
    const rows = await tx<Item[]>`
      with t as (select seq, begun from trial_items where lane = ${lane.id} and not begun order by seq limit ${free} for update)
      update trial_items i set begun = true from t where i.seq = t.seq returning i.lane as lane_id, i.seq, t.begun
    `
    taken.push(...rows.toSorted((a, b) => Number(a.seq) - Number(b.seq)))
  }
  return taken
}

/** What came too late to begin goes back. */
const settleTrial: TurningOptions<Item, true>['settle'] = async (tx, done) => {
  const [worked, late] = [done.filter(({ outcome }) => outcome), done.filter(({ outcome }) => !outcome)]
  await tx`delete from trial_items where seq = any(${worked.map(({ item }) => item.seq)}::bigint[])`
  await tx`update trial_items set begun = false where seq = any(${late.map(({ item }) => item.seq)}::bigint[])`
  return []
}

function start(
  work: (item: Item, mayBegin: () => boolean) => Promise<void>,
  options: Partial<TurningOptions<Item, true>> = {},
  by = app,
) {
  const mailbox = startMailbox<Item, true>(by, {
    lanes: 'trial_lanes',
    slots: 50,
    capacity: () => 1,
    refill: true,
    next: take,
    work: async (item, _lane, mayBegin) => {
      await work(item, mayBegin)
      return true
    },
    settle: settleTrial,
    ...options,
  })
  mailboxes.push(mailbox)
  return mailbox
}

/** A process that loses its database whenever it `isAway`. */
function withOutages(service: TestService, why: object = { code: 'ECONNREFUSED' }) {
  const holder = { isAway: false, app: service }
  const reach = () => {
    if (holder.isAway) throw Object.assign(new Error('refused'), why)
    return service.sql
  }
  const sql = new Proxy(service.sql, {
    apply: (_, self, args) => Reflect.apply(reach(), self, args),
    get: (_, name) => Reflect.get(name === 'begin' ? reach() : service.sql, name),
  })
  holder.app = { ...service, sql }
  return holder
}

/** Its transactions are committed, and no commit is answered. */
function withoutAnswers(service: TestService): TestService {
  const begin = async (work: (tx: TransactionSql) => Promise<unknown>) => {
    await service.sql.begin(work)
    throw Object.assign(new Error('the connection was lost'), { code: 'CONNECTION_CLOSED' })
  }
  const get = (_: object, name: string | symbol) =>
    name === 'begin' ? begin : (Reflect.get(service.sql, name) as unknown)
  return { ...service, sql: new Proxy<TestService['sql']>(service.sql, { get }) }
}

async function untilEmpty(timeout = 15_000) {
  await vi.waitFor(async () => expect(await app.sql`select 1 from trial_items`).toHaveLength(0), {
    timeout,
    interval: 25,
  })
}

async function stopAll() {
  await Promise.all(mailboxes.splice(0).map((mailbox) => mailbox.stop()))
}

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
  const settle: TurningOptions<Item, true>['settle'] = async (tx, done) => {
    await tx`delete from trial_items where seq = any(${done.map(({ item }) => item.seq)}::bigint[])`
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
  let inWork = 0
  let most = 0
  const work = async () => {
    most = Math.max(most, ++inWork)
    await sleep(5)
    inWork--
  }
  for (let n = 0; n < 2; n++) start(work, { capacity: () => 3 })
  await add('wide', 'group', 60)
  await untilEmpty()
  await stopAll()
  expect(most).toBe(3)
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
    settle: async (tx, done) => {
      await tx`delete from trial_items where seq = any(${done.map(({ item }) => item.seq)}::bigint[])`
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

test('the lane of a holder that died is taken over when its lease is over', async () => {
  let died = false
  const seen: string[] = []
  const work = async ({ seq }: Item) => {
    if (!died) {
      died = true
      throw new Error('dies')
    }
    seen.push(seq)
  }
  // Begun items of a dead holder are taken again here; what to do with them is each mailbox's own decision.
  const next = async (tx: TransactionSql, wants: Want[]) => {
    await tx`update trial_items set begun = false where lane = any(${wants.map(({ lane }) => lane.id)}::text[])`
    return take(tx, wants)
  }
  // A third of it is slow, and then others keep what they hold for a while: a busy machine must not seem so.
  start(work, { leaseMs: 1_500, next })
  await add('orphan', 'group', 2)
  await untilEmpty()
  await stopAll()
  expect(seen).toHaveLength(2)
})

test('a holder that dies is waited for for less than ten seconds', async () => {
  const { promise: goOn, resolve: end } = Promise.withResolvers<void>()
  start(() => goOn)
  await add('held', 'group', 1)
  await vi.waitFor(async () =>
    expect(
      await app.sql`select held_until < now() + interval '10 seconds' as within from trial_lanes where held_until > now()`,
    ).toEqual([{ within: true }]),
  )
  end()
  await stopAll()
})

test.each([
  ['was away', { code: 'ECONNREFUSED' }],
  ['refused our logins', { code: '28P01', severity: 'FATAL' }],
])('what was done while the database %s is recorded before its lane is taken by anybody', async (_, why) => {
  const seen: string[] = []
  const next = async (tx: TransactionSql, wants: Want[]) => {
    await tx`update trial_items set begun = false where lane = any(${wants.map(({ lane }) => lane.id)}::text[])`
    return take(tx, wants)
  }
  const [here, there] = [withOutages(app, why), withOutages(app, why)]
  const work = async ({ seq }: Item) => {
    if (seen.push(seq) === 1) here.isAway = there.isAway = true
  }
  start(work, { leaseMs: 900, next }, here.app)
  await add('lane', 'group', 1)
  await vi.waitFor(() => expect(seen).toHaveLength(1), { timeout: 5_000, interval: 1 })
  start(work, { leaseMs: 900, next }, there.app)
  await sleep(1_200)
  there.isAway = false
  await sleep(1_200)
  here.isAway = false
  await untilEmpty()
  await stopAll()
  expect(seen).toHaveLength(1)
})

test('what was done is not forgotten when the database goes away while outcomes are recorded one by one', async () => {
  const { promise: goOn, resolve: end } = Promise.withResolvers<void>()
  let [begun, tries, isAway] = [0, 0, true]
  const settle: TurningOptions<Item, true>['settle'] = async (tx, done) => {
    if (done.length > 1) throw new Error(`one of these cannot be recorded: ${++tries}`)
    if (isAway) {
      isAway = false
      throw Object.assign(new Error('the connection was lost'), { code: 'CONNECTION_CLOSED' })
    }
    await tx`delete from trial_items where seq = any(${done.map(({ item }) => item.seq)}::bigint[])`
    return []
  }
  start(
    () => {
      begun++
      return goOn
    },
    { settle },
  )
  await Promise.all(['one', 'other'].map((lane) => add(lane, 'group', 1)))
  await vi.waitFor(() => expect(begun).toBe(2), { timeout: 5_000 })
  end()
  await untilEmpty(3_000)
  await stopAll()
  expect(tries).toBeGreaterThan(0)
  expect(begun).toBe(2)
})

test('a lane that was found empty is given back by a holder that stops, also when the database is away just then', async () => {
  const holder = withOutages(app)
  const next = () => {
    holder.isAway = true
    return Promise.resolve([])
  }
  start(() => Promise.resolve(), { next }, holder.app)
  await add('empty', 'group', 0)
  await vi.waitFor(() => expect(holder.isAway).toBe(true), { timeout: 5_000 })
  const stopping = stopAll()
  await sleep(200)
  expect(await app.sql`select held_until > now() as is_held from trial_lanes`).toEqual([{ isHeld: true }])
  holder.isAway = false
  await stopping
  expect(await app.sql`select held_until > now() as is_held from trial_lanes`).toEqual([{ isHeld: false }])
})

test('failures that a directive tells of stand in the row of a lane that stays held, and its lease stays as it is', async () => {
  const hanging = Promise.withResolvers<void>()
  let begun = 0
  let failures = 0
  const settle: TurningOptions<Item, true>['settle'] = async (tx, done) => {
    await tx`delete from trial_items where seq = any(${done.map(({ item }) => item.seq)}::bigint[])`
    return done.map(({ item }) => ({ laneId: item.laneId, failures: ++failures }))
  }
  start(() => (++begun === 1 ? hanging.promise : Promise.resolve()), { capacity: () => 2, settle })
  await add('failing', 'group', 3)
  const read = () => app.sql`select failures, held_until > now() as is_held from trial_lanes`
  await vi.waitFor(async () => expect(await read()).toEqual([{ failures: 2, isHeld: true }]), { timeout: 5_000 })
  hanging.resolve()
  await untilEmpty()
  await vi.waitFor(async () => expect(await read()).toEqual([{ failures: 3, isHeld: false }]), { timeout: 5_000 })
  await stopAll()
})

test('a lane that works longer than its lease keeps it', async () => {
  const begun: string[] = []
  const work = async ({ seq }: Item) => {
    begun.push(seq)
    await sleep(begun.length === 1 ? 2_200 : 100)
  }
  // Who takes it over finds what the other one has begun.
  const next = async (tx: TransactionSql, wants: Want[]) => {
    const fresh = wants.filter((want) => want.fresh).map(({ lane }) => lane.id)
    await tx`update trial_items set begun = false where lane = any(${fresh}::text[])`
    return take(tx, wants)
  }
  for (let n = 0; n < 2; n++) start(work, { leaseMs: 900, next })
  await add('long', 'group', 5)
  await untilEmpty()
  await stopAll()
  expect(begun).toHaveLength(5)
})

test('a lane that was lost and taken again keeps its lease, though work ends that was begun before', async () => {
  const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  let [begun, claims] = [0, 0]
  const next = (tx: TransactionSql, wants: Want[]) => {
    claims += wants.filter(({ fresh }) => fresh).length
    return take(tx, wants)
  }
  start(() => (++begun === 1 ? first.promise : second.promise), { leaseMs: 600, next })
  await add('again', 'group', 2)
  await vi.waitFor(() => expect(begun).toBe(1), { timeout: 5_000 })
  await app.sql`update trial_lanes set held_until = '-infinity'`
  await vi.waitFor(() => expect(begun).toBe(2), { timeout: 5_000 })
  first.resolve()
  await vi.waitFor(async () => expect(await app.sql`select from trial_items`).toHaveLength(1))
  await sleep(1_000)
  second.resolve()
  await untilEmpty()
  await stopAll()
  expect(claims).toBe(2)
})

test('a lane that goes on says how long it is held, so that its holder does not take his own work for that of another', async () => {
  const hanging = Promise.withResolvers<void>()
  const held: number[] = []
  let claimedAt = 0
  const next = async (tx: TransactionSql, wants: Want[]) => {
    for (const { fresh, heldMs } of wants) {
      if (fresh) claimedAt = performance.now()
      held.push(fresh ? heldMs : heldMs - (performance.now() - claimedAt))
    }
    return take(tx, wants)
  }
  let begun = 0
  start(() => (++begun === 1 ? hanging.promise : sleep(100)), { capacity: () => 2, next })
  await add('lane', 'group', 5)
  await vi.waitFor(() => expect(begun).toBe(5), { timeout: 5_000 })
  hanging.resolve()
  await untilEmpty()
  await stopAll()
  const [first, ...later] = held
  expect([first, later.length > 0]).toEqual([0, true])
  for (const sinceClaimMs of later) expect(sinceClaimMs).toBeGreaterThanOrEqual(0)
  expect(Math.max(...later)).toBeLessThan(1_000)
})

test('what was committed without an answer goes on as if it had been answered', async () => {
  const seen: string[] = []
  const work = async ({ seq }: Item) => {
    seen.push(seq)
    if (seen.length === 1) await sleep(900)
  }
  const next = async (tx: TransactionSql, wants: Want[]) => {
    const fresh = wants.filter((want) => want.fresh).map(({ lane }) => lane.id)
    await tx`update trial_items set begun = false where lane = any(${fresh}::text[])`
    return take(tx, wants)
  }
  start(work, { leaseMs: 600, next }, withoutAnswers(app))
  await add('unanswered', 'group', 5)
  await untilEmpty()
  await stopAll()
  expect(seen).toHaveLength(5)
})

test('what was picked too late in the lease of its lane is not worked on, and goes back', async () => {
  const seen: string[] = []
  let unbegun = 0
  let picks = 0
  start(async ({ seq }) => void seen.push(seq), {
    leaseMs: 1_500,
    next: async (tx, wants) => {
      if (++picks === 1) await sleep(1_000)
      return take(tx, wants)
    },
    settle: async (tx, done, lockLanes) => {
      unbegun += done.filter(({ outcome }) => !outcome).length
      return settleTrial(tx, done, lockLanes)
    },
  })
  await add('late', 'group', 1)
  await untilEmpty()
  await stopAll()
  expect(unbegun).toBe(1)
  expect(seen).toHaveLength(1)
})

test('work that has to wait before it begins is told that a freeze has made it too late, and that the lane is held again', async () => {
  const told: boolean[] = []
  const work = async (_item: Item, mayBegin: () => boolean) => {
    told.push(mayBegin())
    freezeFor(800)
    told.push(mayBegin())
    await vi.waitFor(() => expect(mayBegin()).toBe(true), { timeout: 5_000 })
  }
  start(work, { leaseMs: 1_500 })
  await add('frozen', 'group', 1)
  await untilEmpty()
  expect(told).toEqual([true, false])
})

test('an outcome that cannot be recorded holds up no other, and its lane is taken again when its lease is over', async () => {
  const tries: string[] = []
  start(async ({ laneId }) => void tries.push(laneId), {
    leaseMs: 1_500,
    next: async (tx, wants) => {
      const fresh = wants.filter((want) => want.fresh).map(({ lane }) => lane.id)
      await tx`update trial_items set begun = false where lane = any(${fresh}::text[])`
      return take(tx, wants)
    },
    settle: async (tx, done, lockLanes) => {
      const isOdd = done.some(({ item }) => item.laneId === 'odd')
      if (isOdd && tries.filter((lane) => lane === 'odd').length === 1) throw new Error('odd')
      return settleTrial(tx, done, lockLanes)
    },
  })
  await Promise.all([add('odd', 'group', 1), ...Array.from({ length: 5 }, (_, n) => add(`plain ${n}`, 'group', 1))])
  await untilEmpty()
  await stopAll()
  expect(tries.toSorted()).toEqual(['odd', 'odd', ...Array.from({ length: 5 }, (_, n) => `plain ${n}`)])
})

test('a group is claimed at its pace, and another group does not wait for it', async () => {
  await app.sql`insert into trial_pace (grp, interval_ms) values ('slow', 100), ('quick', 1)`
  const times: Record<string, number[]> = { slow: [], quick: [] }
  const startedAt = performance.now()
  const work = async ({ laneId }: Item) => void times[laneId.split(' ')[0] ?? '']?.push(performance.now() - startedAt)
  for (let n = 0; n < 2; n++) start(work, { pace: { table: 'trial_pace', burstMs: 300 } })
  await Promise.all(
    Array.from({ length: 12 }, (_, n) => Promise.all([add(`slow ${n}`, 'slow', 1), add(`quick ${n}`, 'quick', 1)])),
  )
  await untilEmpty()
  await stopAll()
  // Three at once, then one every 100 ms: the twelfth after 900 ms.
  const last = Math.max(...(times['slow'] ?? []))
  expect(last).toBeGreaterThan(850)
  expect(Math.max(...(times['quick'] ?? []))).toBeLessThan(last)
})

test('lanes with failures hold no more than their share of the slots', async () => {
  const inWork = { bad: 0, all: 0 }
  const most = { bad: 0, all: 0 }
  const seen: string[] = []
  const { promise: allSlotsUsed, resolve: noteAllUsed } = Promise.withResolvers<void>()
  const work = async ({ laneId }: Item) => {
    seen.push(laneId)
    const isBad = laneId.startsWith('bad')
    most.all = Math.max(most.all, ++inWork.all)
    if (isBad) most.bad = Math.max(most.bad, ++inWork.bad)
    if (inWork.all === 10) noteAllUsed()
    for (const mailbox of mailboxes) mailbox.wake()
    await (isBad ? sleep(100) : allSlotsUsed)
    if (isBad) inWork.bad--
    inWork.all--
  }
  for (let n = 0; n < 20; n++) await add(`bad${n}`, 'group', 1)
  await app.sql`update trial_lanes set failures = 1`
  for (let n = 0; n < 20; n++) await add(`good${n}`, `group ${n}`, 1)
  start(work, { slots: 10, failingShare: 0.2, perGroup: 100 })
  await vi.waitFor(() => expect(seen.filter((lane) => lane.startsWith('good'))).toHaveLength(20), { timeout: 15_000 })
  await untilEmpty()
  await stopAll()
  expect(most).toEqual({ bad: 2, all: 10 })
})

test('lanes that begin to fail while they are held give way, until they hold no more than their share', async () => {
  const inWork = { bad: 0, good: 0 }
  let isBroken = false
  const seen: string[] = []
  const work = async ({ laneId }: Item) => {
    seen.push(laneId)
    const kind = laneId.startsWith('bad') ? 'bad' : 'good'
    inWork[kind]++
    await sleep(kind === 'bad' && isBroken ? 100 : 5)
    inWork[kind]--
  }
  const fail = async (tx: TransactionSql, done: { item: Item }[]) => {
    await tx`delete from trial_items where seq = any(${done.map(({ item }) => item.seq)}::bigint[])`
    return done.map(({ item: { laneId } }) => ({ laneId, failures: isBroken && laneId.startsWith('bad') ? 1 : 0 }))
  }
  for (let n = 0; n < 10; n++) await add(`bad${n}`, `bad group ${n}`, 60)
  start(work, { slots: 10, failingShare: 0.2, settle: fail })
  await vi.waitFor(() => expect(seen.length).toBeGreaterThan(50), { timeout: 15_000 })
  isBroken = true
  for (let n = 0; n < 10; n++) await add(`good${n}`, `good group ${n}`, 10)
  await vi.waitFor(() => expect(seen.filter((lane) => lane.startsWith('good'))).toHaveLength(100), { timeout: 15_000 })
  const [bad, left] = [inWork.bad, await app.sql`select from trial_items`]
  await stopAll()
  expect(bad).toBeLessThanOrEqual(2)
  // They did not just come to their end before the others had their turn.
  expect(left.length).toBeGreaterThan(300)
})

test('a claim takes no more than its share, also with the plan of a table that was almost empty', async () => {
  await app.sql`vacuum full trial_lanes`
  await add('lane', 'group', 1)
  await app.sql`vacuum analyze trial_lanes`
  for (let n = 0; n < 39; n++) await add(`lane${n}`, 'group', 1)
  let inWork = 0
  let most = 0
  const work = async () => {
    most = Math.max(most, ++inWork)
    await sleep(20)
    inWork--
  }
  start(work, { slots: 4, perGroup: 100 })
  await untilEmpty()
  await stopAll()
  expect([3, 4]).toContain(most)
})

test('slots bound what is in work, also when lanes take more', async () => {
  let inWork = 0
  let most = 0
  const work = async () => {
    most = Math.max(most, ++inWork)
    await sleep(3)
    inWork--
  }
  start(work, { slots: 12, capacity: () => 10 })
  await Promise.all(Array.from({ length: 8 }, (_, n) => add(`bounded ${n}`, `group ${n}`, 25)))
  await untilEmpty()
  await stopAll()
  expect(most).toBeLessThanOrEqual(16)
})

test('groups whose lanes are all held do not stand before a due one', async () => {
  for (let n = 0; n < 150; n++) await add(`held ${n}`, `a ${n}`, 1)
  await app.sql`update trial_lanes set held_until = now() + interval '1 hour'`
  await add('free', 'z', 1)
  expect(await findDueGroups(app.sql, 'trial_lanes', '')).toEqual({ groups: ['z'], last: '' })
  const seen: string[] = []
  start(async ({ laneId }) => void seen.push(laneId))
  await vi.waitFor(() => expect(seen).toEqual(['free']), { timeout: 5_000, interval: 5 })
  await stopAll()
})

test('lanes that turn out to be empty do not stand before another one of their group', async () => {
  await app.sql`
    insert into trial_lanes (id, grp, due_at) select 'empty ' || n, 'group', now() - interval '1 s' from generate_series(1, 160) n
  `
  const seen: string[] = []
  start(async ({ laneId }) => void seen.push(laneId))
  await add('full', 'group', 1)
  await vi.waitFor(() => expect(seen).toEqual(['full']), { timeout: 3_000, interval: 5 })
  await stopAll()
})

test.each(['pace', 'no pace'])('a group with more than all slots take leaves some to another (%s)', async (pace) => {
  await app.sql`insert into trial_pace (grp, interval_ms) values ('a', 0.001), ('b', 0.001)`
  const seen: string[] = []
  const work = async ({ laneId }: Item) => {
    seen.push(laneId)
    await sleep(5)
  }
  await Promise.all(Array.from({ length: 200 }, (_, n) => add(`a ${n}`, 'a', 1)))
  await add('b', 'b', 1)
  start(work, { slots: 2, ...(pace === 'pace' && { pace: { table: 'trial_pace', burstMs: 1_000 } }) })
  await vi.waitFor(() => expect(seen).toContain('b'), { timeout: 10_000, interval: 5 })
  await stopAll()
  expect(seen.length).toBeLessThan(150)
})

test('a group behind many others has its turn while those have work', async () => {
  await app.sql`
    insert into trial_lanes (id, grp, due_at) select 'a ' || g || ' ' || n, 'a ' || g, now()
    from generate_series(1, 64) g, generate_series(1, 60) n
  `
  await app.sql`insert into trial_items (lane) select id from trial_lanes`
  await add('z', 'z', 1)
  const seen: string[] = []
  start(async ({ laneId }) => void seen.push(laneId), { slots: 8, perGroup: 1 })
  await vi.waitFor(() => expect(seen).toContain('z'), { timeout: 15_000, interval: 5 })
  await stopAll()
  expect(seen.length).toBeLessThan(1_500)
})

test('of few due groups all are found, those that are due the longest first; of many, 64 at a time', async () => {
  const nameOf = (n: number) => `g${String(n).padStart(3, '0')}`
  await app.sql`
    insert into trial_lanes (id, grp, due_at)
    select 'l' || n, 'g' || lpad(n::text, 3, '0'), now() - n * interval '1 second' from generate_series(0, 254) n
  `
  await app.sql`
    insert into trial_lanes (id, grp, due_at, held_until) values
      ('later', 'later', now() + interval '1 hour', '-infinity'), ('held', 'held', now(), now() + interval '1 hour')
  `
  const all = Array.from({ length: 255 }, (_none, n) => nameOf(n))
  const few = await findDueGroups(app.sql, 'trial_lanes', nameOf(100))
  expect(few).toEqual({ groups: all.toReversed(), last: '' })
  await app.sql`insert into trial_lanes (id, grp, due_at) values ('one more', ${nameOf(0)}, now())`
  const many = await findDueGroups(app.sql, 'trial_lanes', nameOf(100))
  expect(many).toEqual({ groups: all.slice(101, 165), last: nameOf(164) })
})

test('a group that has used up its pace goes on as soon as it may', async () => {
  await app.sql`insert into trial_pace (grp, interval_ms) values ('group', 20)`
  const seenAt: number[] = []
  for (let n = 0; n < 30; n++) await add(`lane ${n}`, 'group', 1)
  start(async () => void seenAt.push(performance.now()), { pace: { table: 'trial_pace', burstMs: 20 } })
  await vi.waitFor(() => expect(seenAt).toHaveLength(30), { timeout: 15_000, interval: 5 })
  await stopAll()
  // One at a time, each some 30 ms after the one before; with the poll of a busy mailbox it would be 125 ms at least.
  const gaps = seenAt.slice(1).map((at, n) => at - (seenAt[n] ?? 0))
  expect(gaps.toSorted((a, b) => a - b)[7]).toBeLessThan(100)
})

test.each(['long queues', 'slow work'])('a tenant with many lanes and %s leaves room to another', async (why) => {
  const ended = Promise.withResolvers<void>()
  const seen: string[] = []
  const work = async ({ laneId }: Item) => {
    seen.push(laneId)
    await (why === 'slow work' ? ended.promise : Promise.race([ended.promise, sleep(20)]))
  }
  await Promise.all(Array.from({ length: 30 }, (_, n) => add(`a ${n}`, 'a', why === 'slow work' ? 1 : 100)))
  start(work, { slots: 10, perGroup: 30 })
  await vi.waitFor(() => expect(seen.length).toBeGreaterThanOrEqual(8), { timeout: 5_000, interval: 5 })
  await add('b', 'b', 1)
  await vi.waitFor(() => expect(seen).toContain('b'), { timeout: 10_000, interval: 5 })
  ended.resolve()
  await stopAll()
  expect(seen.indexOf('b')).toBeLessThan(1_000)
})

test('a tenant that came first gives slots back to one that comes, until both have as many', async () => {
  const done = { a: 0, b: 0 }
  type Tenant = keyof typeof done
  const work = async ({ laneId }: Item) => {
    await sleep(20)
    done[laneId.startsWith('a') ? 'a' : 'b'] += 1
  }
  const addAll = (tenant: Tenant) =>
    Promise.all(Array.from({ length: 30 }, (_, n) => add(`${tenant} ${n}`, tenant, 100)))
  const until = (tenant: Tenant, count: number) =>
    vi.waitFor(() => expect(done[tenant]).toBeGreaterThanOrEqual(count), { timeout: 10_000, interval: 5 })
  await addAll('a')
  start(work, { slots: 27, perGroup: 30 })
  await until('a', 100)
  await addAll('b')
  await until('b', 100)
  const before = { ...done }
  await until('b', 400)
  await stopAll()
  const share = (done.a - before.a) / (done.b - before.b)
  // About as many; who gave nothing back would have more than three times as many.
  expect(share).toBeGreaterThan(0.4)
  expect(share).toBeLessThan(2.5)
})

test('a tenant has no more room with many groups than with one', async () => {
  await app.sql`
    insert into trial_pace (grp, interval_ms, open_for) select 'a' || n, 0.001, 'a' from generate_series(1, 20) n
  `
  await app.sql`insert into trial_pace (grp, interval_ms, open_for) values ('b1', 0.001, 'b')`
  const ended = Promise.withResolvers<void>()
  const seen: string[] = []
  const work = async ({ laneId }: Item) => {
    seen.push(laneId)
    await ended.promise
  }
  await Promise.all(Array.from({ length: 40 }, (_, n) => add(`a ${n}`, `a${1 + (n % 20)}`, 1)))
  start(work, { slots: 10, pace: { table: 'trial_pace', burstMs: 1_000 } })
  await vi.waitFor(() => expect(seen.length).toBeGreaterThanOrEqual(8), { timeout: 5_000, interval: 5 })
  await add('b', 'b1', 1)
  await vi.waitFor(() => expect(seen).toContain('b'), { timeout: 10_000, interval: 5 })
  expect(seen.filter((lane) => lane.startsWith('a'))).toHaveLength(8)
  ended.resolve()
  await stopAll()
})

test('slots are reserved for no more of a tenant than it has room for', async () => {
  const mailbox = start(() => Promise.resolve(), { slots: 10 })
  const reserved = mailbox.reserve([...Array.from({ length: 12 }, () => 'a'), 'b'])
  mailbox.adopt(reserved.filter(Boolean).length, [])
  expect(reserved).toEqual([...Array.from({ length: 12 }, (_, n) => n < 8), true])
  await stopAll()
})

test.each([1, 200])(
  'slots that are free again are taken at once, not at the next poll (%s tenants)',
  async (tenants) => {
    const begunAt: number[] = []
    start(async () => void begunAt.push(performance.now()), { slots: 10, refill: false })
    await Promise.all(Array.from({ length: 200 }, (_, n) => add(`lane${n}`, `group${n % tenants}`, 1)))
    await untilEmpty()
    await stopAll()
    const gaps = begunAt.slice(1).map((at, n) => at - (begunAt[n] ?? 0))
    // From poll to poll there would be twenty of them.
    expect(gaps.filter((ms) => ms > 100).length).toBeLessThan(15)
  },
)

test('outcomes may be recorded later and together, while work begins as soon as before', async () => {
  const begun: string[] = []
  const recorded: string[][] = []
  start(async ({ laneId }) => void begun.push(laneId), {
    settleSpacingMs: 1_500,
    settle: (tx, done, lock) => {
      recorded.push(done.map(({ item }) => item.laneId).toSorted())
      return settleTrial(tx, done, lock)
    },
  })
  await add('first', 'a', 1)
  await untilEmpty()
  for (const lane of ['b', 'c', 'd']) {
    await add(lane, 'a', 1)
    await vi.waitFor(() => expect(begun).toContain(lane), { timeout: 1_000 })
  }
  expect(recorded).toEqual([['first']])
  await untilEmpty()
  expect(recorded).toEqual([['first'], ['b', 'c', 'd']])
  await stopAll()
})

test('slots that became free while a claim found none are taken at once, too', async () => {
  const [ended, answered] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const claimed = Promise.withResolvers<void>()
  let isLate = false
  const begin = async (work: (tx: TransactionSql) => Promise<unknown>) => {
    const isMine = isLate
    isLate = false
    const result = await app.sql.begin(work)
    if (isMine) claimed.resolve()
    if (isMine) await answered.promise
    return result
  }
  const get = (_: object, name: string | symbol) => (name === 'begin' ? begin : (Reflect.get(app.sql, name) as unknown))
  const seen: string[] = []
  const work = ({ laneId }: Item) => (seen.push(laneId) <= 8 ? ended.promise : Promise.resolve())
  start(work, { slots: 10, refill: false }, { ...app, sql: new Proxy<TestService['sql']>(app.sql, { get }) })
  await Promise.all(Array.from({ length: 9 }, (_, n) => add(`lane ${n}`, 'a', 1)))
  await vi.waitFor(() => expect(seen).toHaveLength(8), { timeout: 5_000 })
  isLate = true
  mailboxes.at(-1)?.wake()
  await claimed.promise
  // The longest waits between polls: one and a half seconds.
  const random = vi.spyOn(Math, 'random').mockReturnValue(1)
  onTestFinished(() => random.mockRestore())
  ended.resolve()
  await vi.waitFor(async () => expect(await app.sql`select from trial_items`).toHaveLength(1), { timeout: 5_000 })
  await sleep(50)
  const startedAt = performance.now()
  answered.resolve()
  await untilEmpty()
  expect(seen).toHaveLength(9)
  expect(performance.now() - startedAt).toBeLessThan(1_200)
  await stopAll()
})

test('lanes of a tenant that has no room for all of them take turns', async () => {
  const ended = new AbortController()
  const seen = new Set<string>()
  const work = async ({ laneId }: Item) => {
    seen.add(laneId)
    await sleep(20, undefined, { signal: ended.signal }).catch(() => {})
  }
  await Promise.all(Array.from({ length: 12 }, (_, n) => add(`lane ${n}`, 'a', 200)))
  start(work, { slots: 5, perGroup: 30 })
  await vi.waitFor(() => expect(seen.size).toBe(12), { timeout: 10_000, interval: 5 })
  ended.abort()
  await stopAll()
})

test('with nobody else due, a tenant with long queues keeps its slots without a claim', async () => {
  let claims = 0
  let worked = 0
  const next = (tx: TransactionSql, wants: Want[]) => {
    if (wants.some(({ fresh }) => fresh)) claims++
    return take(tx, wants)
  }
  await Promise.all(Array.from({ length: 4 }, (_, n) => add(`lane ${n}`, 'a', 100)))
  start(async () => void worked++, { slots: 10, next })
  await untilEmpty()
  await stopAll()
  expect(worked).toBe(400)
  expect(claims).toBeLessThanOrEqual(4)
})
