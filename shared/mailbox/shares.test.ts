import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { rowsRead } from '@app/test/rows-read.ts'
import type { TestService } from '@app/test/service.ts'
import { beforeAll, expect, test, vi } from 'vitest'
import type { Sql, TransactionSql } from '../database/database.ts'
import { settleLimit } from './box.ts'
import { findDueGroups } from './claim-lanes.ts'
import type { Want } from './mailbox.ts'
import { countMost, type Item, settleTrial, take, trialMailboxes } from './testing/trial-mailboxes.ts'

let app: TestService
const trial = trialMailboxes()
const { mailboxes, add, start, untilEmpty, pollLate, stopAll } = trial
beforeAll(() => void ({ app } = trial))

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

test.each(['trial_lanes', 'trial_pace'])(
  'whoever holds a row of one group (%s) keeps no other waiting',
  async (table) => {
    const pace = { table: 'trial_pace', burstMs: 1_000 }
    await app.sql`insert into trial_pace (grp, interval_ms) values ('held', 1), ('free', 1)`
    await add('held', 'held', 1)
    const seen: string[] = []
    await app.sql.begin(async (tx) => {
      await tx`select from ${tx(table)} where grp = 'held' for update`
      start(async ({ laneId }) => void seen.push(laneId), { pace })
      await add('free', 'free', 1)
      await vi.waitFor(() => expect(seen).toEqual(['free']), { timeout: 8_000 })
    })
    await untilEmpty()
    await stopAll()
  },
)

test('a group does not rest for as long as the clock was put back', async () => {
  await app.sql`insert into trial_pace (grp, tat, interval_ms) values ('ahead', now() + interval '3 days', 100)`
  for (let n = 0; n < 12; n++) await add(`ahead ${n}`, 'ahead', 1)
  const startedAt = performance.now()
  start(async () => {}, { pace: { table: 'trial_pace', burstMs: 300 } })
  await untilEmpty()
  await stopAll()
  // At its pace again.
  expect(performance.now() - startedAt).toBeGreaterThan(850)
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

test('lanes with failures that wait for their share are claimed as it becomes free, not at the next poll', async () => {
  pollLate(100)
  const ended = Promise.withResolvers<void>()
  const begun: string[] = []
  const work = async ({ laneId }: Item) => {
    begun.push(laneId)
    if (laneId !== 'good') await ended.promise
  }
  for (let n = 0; n < 20; n++) await add(`bad${n}`, 'group', 1)
  await app.sql`update trial_lanes set failures = 1`
  const mailbox = start(work, { slots: 10, failingShare: 0.2 })
  await vi.waitFor(() => {
    mailbox.wake()
    expect(begun).toHaveLength(2)
  })
  // The claim that takes it finds their share used up.
  await add('good', 'good', 1)
  await vi.waitFor(async () => expect(await app.sql`select from trial_items`).toHaveLength(20))
  ended.resolve()
  await untilEmpty()
  await stopAll()
})

test('a claim takes no more than its share, also with the plan of a table that was almost empty', async () => {
  await app.sql`vacuum full trial_lanes`
  await add('lane', 'group', 1)
  await app.sql`vacuum analyze trial_lanes`
  for (let n = 0; n < 39; n++) await add(`lane${n}`, 'group', 1)
  const counted = countMost(20)
  start(counted.work, { slots: 4, perGroup: 100 })
  await untilEmpty()
  await stopAll()
  expect([3, 4]).toContain(counted.most)
})

test('slots bound what is in work, also when lanes take more', async () => {
  const counted = countMost(3)
  start(counted.work, { slots: 12, capacity: () => 10 })
  await Promise.all(Array.from({ length: 8 }, (_, n) => add(`bounded ${n}`, `group ${n}`, 25)))
  await untilEmpty()
  await stopAll()
  expect(counted.most).toBeLessThanOrEqual(16)
})

test('beside items that need no slot others come into work, until those need theirs again', async () => {
  const gates: (() => void)[] = []
  const work = () => new Promise<void>((resolve) => void gates.push(resolve))
  let beside = 0
  start(work, { slots: 4, beside: () => beside })
  for (let n = 0; n < 12; n++) await add(`lane${n}`, `group${n}`, 1)
  await vi.waitFor(() => expect(gates).toHaveLength(4))
  beside = 3
  await vi.waitFor(() => expect(gates).toHaveLength(7))
  beside = 0
  for (const open of gates.splice(0, 3)) open()
  await sleep(600)
  expect(gates).toHaveLength(4)
  gates.pop()?.()
  await vi.waitFor(() => expect(gates).toHaveLength(4))
  const opening = setInterval(() => gates.splice(0).forEach((open) => open()), 20)
  await untilEmpty().finally(() => clearInterval(opening))
})

test('groups are looked for among lanes that are due since some time, and all of them again when that is told', async () => {
  await app.sql`
    insert into trial_lanes (id, grp, due_at) values
      ('first', 'a', now() - interval '1 hour'), ('second', 'b', now() - interval '1 minute'), ('third', 'c', now())
  `
  const now = Date.now() / 1_000
  const near = (seconds: number) => expect.toSatisfy((at: number) => Math.abs(at - (now - seconds)) < 9)
  const find = (from: number | null) => findDueGroups(app.sql, 'trial_lanes', { from })
  expect(await find(null)).toEqual({ groups: ['a', 'b', 'c'], last: '', floor: near(3_600) })
  expect(await find(now - 90)).toMatchObject({ groups: ['b', 'c'], floor: near(60) })
  await app.sql`delete from trial_lanes where grp <> 'c'`
  expect(await find(null)).toMatchObject({ groups: ['c'], floor: near(10) })
  await app.sql`delete from trial_lanes`
  expect(await find(null)).toMatchObject({ groups: [], floor: near(10) })
})

/** It reads a table that somebody's transaction has made dear: 30 ms and more, of which ten times as long passes until the next look at all. */
function dearly(service: TestService): TestService {
  const sql = new Proxy(service.sql, {
    apply: (target, self, args) =>
      String(args[0]).includes('as floor')
        ? sleep(30).then(() => Reflect.apply(target, self, args))
        : Reflect.apply(target, self, args),
  })
  return { ...service, sql }
}

test('while looks are dear, a lane that is due since long before is claimed all the same', async () => {
  const seen: string[] = []
  start(async ({ laneId }) => void seen.push(laneId), {}, dearly(app))
  await add('new', 'group', 1)
  await untilEmpty()
  await app.sql.begin(async (tx) => {
    await tx`insert into trial_items (lane) values ('late')`
    await tx`insert into trial_lanes (id, grp, due_at) values ('late', 'group', now() - interval '1 hour')`
  })
  await add('another', 'group', 1)
  await untilEmpty()
  await stopAll()
  expect(seen.toSorted()).toEqual(['another', 'late', 'new'])
})

test('groups whose lanes are all held do not stand before a due one', async () => {
  for (let n = 0; n < 150; n++) await add(`held ${n}`, `a ${n}`, 1)
  await app.sql`update trial_lanes set held_until = now() + interval '1 hour'`
  await add('free', 'z', 1)
  expect(await findDueGroups(app.sql, 'trial_lanes')).toMatchObject({ groups: ['z'], last: '' })
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
  pollLate()
  start(async ({ laneId }) => void seen.push(laneId))
  await add('full', 'group', 1)
  // A poll for each sixteen of them would be ten, of ten seconds.
  await vi.waitFor(() => expect(seen).toEqual(['full']), { timeout: 15_000, interval: 5 })
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

test('groups behind those that a claim looks at are claimed at once, not at the next poll', async () => {
  pollLate()
  await app.sql`insert into trial_lanes (id, grp, due_at) select 'l' || n, 'g' || n, now() from generate_series(1, 600) n`
  await app.sql`insert into trial_items (lane) select id from trial_lanes`
  start(() => Promise.resolve(), { slots: 400 })
  await untilEmpty()
  await stopAll()
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
  const few = await findDueGroups(app.sql, 'trial_lanes', { after: nameOf(100) })
  expect(few).toMatchObject({ groups: all.toReversed(), last: '' })
  await app.sql`insert into trial_lanes (id, grp, due_at) values ('one more', ${nameOf(0)}, now())`
  const many = await findDueGroups(app.sql, 'trial_lanes', { after: nameOf(100) })
  expect(many).toMatchObject({ groups: all.slice(101, 165), last: nameOf(164) })
  const around = await findDueGroups(app.sql, 'trial_lanes', { after: nameOf(200) })
  expect(around).toMatchObject({ groups: [...all.slice(201), ...all.slice(0, 64)], last: '' })
})

test.each([2_500, 1_999])(
  'a look walks over no more than 2,000 of %i groups that wait, and serves what is due the longest',
  async (waiting) => {
    await app.sql`
    insert into trial_lanes (id, grp, due_at)
    select 'w' || n, 'a' || lpad(n::text, 4, '0'), now() + interval '1 hour' from generate_series(1, ${waiting}::int) n
    union all
    select 'd' || n, 'b' || lpad(n::text, 3, '0'), now() - n * interval '1 second' from generate_series(1, 300) n
  `
    const dueOf = (from: number, count: number) =>
      Array.from({ length: count }, (_none, n) => `b${String(from + n).padStart(3, '0')}`)
    const look = (after: string) =>
      app.sql.begin(async (tx) => {
        const before = await rowsRead(tx, ['trial_lanes'])
        const found = await findDueGroups(tx as unknown as Sql, 'trial_lanes', { after })
        expect((await rowsRead(tx, ['trial_lanes'])) - before).toBeLessThan(2_400)
        return found
      })
    const first = await look('')
    const reached = Math.max(0, 2_000 - waiting)
    const oldest = dueOf(301 - (64 - reached), 64 - reached).toReversed()
    expect(first).toMatchObject({ groups: [...dueOf(1, reached), ...oldest], last: reached > 0 ? 'b001' : 'a2000' })
    expect(await look(first.last)).toMatchObject({ groups: dueOf(1 + reached, 64), last: dueOf(64 + reached, 1)[0] })
  },
)

test('a group that has used up its pace goes on as soon as it may', async () => {
  await app.sql`insert into trial_pace (grp, interval_ms) values ('group', 20)`
  const seenAt: number[] = []
  for (let n = 0; n < 30; n++) await add(`lane ${n}`, 'group', 1)
  pollLate(1.5)
  start(async () => void seenAt.push(performance.now()), { pace: { table: 'trial_pace', burstMs: 20 } })
  await vi.waitFor(() => expect(seenAt).toHaveLength(30), { timeout: 15_000, interval: 5 })
  await stopAll()
  // One at a time, each some 40 ms after the one before; with the poll of a busy mailbox it would be 375 ms.
  const gaps = seenAt.slice(1).map((at, n) => at - (seenAt[n] ?? 0))
  expect(gaps.toSorted((a, b) => a - b)[7]).toBeLessThan(300)
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
    vi.waitFor(() => expect(done[tenant]).toBeGreaterThanOrEqual(count), { timeout: 25_000, interval: 5 })
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
  expect(share).toBeGreaterThan(0.3)
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

test('slots are reserved for no more tenants than there are slots, and for none once the mailbox stops', async () => {
  const mailbox = start(() => Promise.resolve(), { slots: 2 })
  expect(mailbox.reserve(['a', 'b', 'c'])).toEqual([true, true, false])
  mailbox.adopt(2, [])
  await stopAll()
  expect(mailbox.reserve(['a'])).toEqual([false])
})

test('while more outcomes than one settlement takes wait to be recorded, no slot is free', async () => {
  const away = Promise.withResolvers<void>()
  let begun = 0
  const mailbox = start(() => Promise.resolve(void begun++), {
    slots: 2_000,
    settle: (tx, done, lock) => away.promise.then(() => settleTrial(tx, done, lock)),
  })
  const count = settleLimit + 1
  await app.sql`insert into trial_items (lane) select 'lane' || n from generate_series(1, ${count}::int) n`
  await app.sql`
    insert into trial_lanes (id, grp, due_at) select 'lane' || n, 'group' || n, now() from generate_series(1, ${count}::int) n
  `
  await vi.waitFor(() => expect(begun).toBe(count), { timeout: 10_000, interval: 5 })
  await nextTurn()
  expect(mailbox.reserve(['another'])).toEqual([false])
  away.resolve()
  await untilEmpty()
  await vi.waitFor(() => expect(mailbox.reserve(['another'])).toEqual([true]))
  mailbox.adopt(1, [])
  await stopAll()
})

test.each([1, 200])(
  'slots that are free again are taken at once, not at the next poll (%s tenants)',
  async (tenants) => {
    pollLate()
    start(() => Promise.resolve(), { slots: 10, refill: false })
    await Promise.all(Array.from({ length: 200 }, (_, n) => add(`lane${n}`, `group${n % tenants}`, 1)))
    // From poll to poll it would take twenty of them.
    await untilEmpty()
    await stopAll()
  },
)

test('outcomes may be recorded later and together, while work begins as soon as before', async () => {
  const begun: string[] = []
  const recorded: string[][] = []
  start(async ({ laneId }) => void begun.push(laneId), {
    settleSpacingMs: 4_000,
    settle: (tx, done, lock) => {
      recorded.push(done.map(({ item }) => item.laneId).toSorted())
      return settleTrial(tx, done, lock)
    },
  })
  await add('first', 'a', 1)
  await untilEmpty()
  for (const lane of ['b', 'c', 'd']) {
    await add(lane, 'a', 1)
    await vi.waitFor(() => expect(begun).toContain(lane), { timeout: 3_000 })
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
  pollLate()
  ended.resolve()
  await vi.waitFor(async () => expect(await app.sql`select from trial_items`).toHaveLength(1), { timeout: 5_000 })
  await sleep(50)
  const startedAt = performance.now()
  answered.resolve()
  await untilEmpty()
  expect(seen).toHaveLength(9)
  expect(performance.now() - startedAt).toBeLessThan(5_000)
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
