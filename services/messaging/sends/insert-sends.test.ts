import { setTimeout as sleep } from 'node:timers/promises'
import { openDatabase, type Sql } from '@app/shared/database/database.ts'
import { newId } from '@app/shared/values/ids.ts'
import { newAccountState } from '@app/test/account-state.ts'
import { createTestDatabase, type TestDatabase } from '@app/test/database.ts'
import { keptPlan } from '@app/test/kept-plan.ts'
import { untilSomebodyWaits } from '@app/test/lock-waits.ts'
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest'
import { storeSender } from '../senders/put-sender.ts'
import { leftGroup } from '../senders/take-over-lanes.ts'
import { newSend } from '../testing/sends.ts'
import { type AcceptableSend, type Inserted, insertSends } from './insert-sends.ts'
import { letGo } from './let-go.ts'
import { wakeSleepers } from './wake-sleepers.ts'

const organizationId = newId('org')
const noKeys = { current: '', byId: new Map() }
const log = { warn: () => {}, error: () => {} } as never
let database: TestDatabase
let sql: Sql
let phone = 106540352240000
let holder = 0

beforeAll(async () => {
  database = await createTestDatabase('messaging')
  sql = database.sql
})
afterAll(() => database.drop())
beforeEach(async () => {
  phone++
  await setSender()
})

let version = 0
const setSender = (refusal: 'customer_suspended' | null = null, beforeCommit = async () => {}) => {
  const state = newAccountState({
    organization_id: organizationId,
    phone_number_id: String(phone),
    version: ++version,
    refusal,
  })
  return sql.begin(async (tx) => {
    await storeSender(tx, noKeys, state)
    await beforeCommit()
  })
}

const sendTo = (conversation: string, changes: Partial<AcceptableSend> = {}) =>
  newSend('hello', '+15550123456', {
    organization_id: organizationId,
    phone_number_id: String(phone),
    conversation_id: conversation,
    ...changes,
  })

/** What stands behind the sends of a test in their statement. */
let others: AcceptableSend[] = []

/** A send that comes alone has a statement of its own, and comes to the same as beside another one. */
function bothWays(name: string, run: () => Promise<void>) {
  test(name, run)
  test(`${name}, beside a send of a number that nobody has`, async () => {
    others = [newSend('not ours', '+15550123457', { phone_number_id: '1' })]
    await run().finally(() => (others = []))
  })
}

async function insert(sends: AcceptableSend[], slots = 100, dueFrom: number | null = null) {
  const all = [...sends, ...others]
  const mayBegin = all.map((_, n) => n < slots)
  const inserted = await insertSends(sql, all, {
    mayBegin,
    leaseMs: 15_000,
    burstMs: 250,
    dueFrom,
    holder: ++holder,
  })
  return inserted.slice(0, sends.length)
}

const isBegun = (inserted: Inserted[]) => inserted.map(({ begun }) => begun !== null)
const openSends = (lane: string) => sql<{ attempts: number; begun: boolean }[]>`
  select attempts, begun_at is not null as begun from sends where lane = ${lane} order by seq
`
const laneOf = async (id: string) => {
  const [lane] = await sql<{ isHeld: boolean; isDue: boolean; arrivals: string }[]>`
    select held_until > now() as is_held, due_at <= now() as is_due, arrivals from send_lanes where id = ${id}
  `
  return lane
}

test('the sends of a statement are not compared with each other to find their lanes', async () => {
  const one = openDatabase(database.url, 'messaging', { max: 1 })
  onTestFinished(() => one.end())
  await insertSends(one, [], { mayBegin: [], leaseMs: 15_000, burstMs: 250, dueFrom: null, holder: ++holder })
  const plan = await keptPlan(one, ['monthly_sends as c'], ["'[]'", "'200'", "'200'", '250', 'null', '15000', '1', '1'])
  expect(plan).toMatch(
    /Hash Cond: \(\w+\.conversation_id = l(_\d)?\.id\)[^]*Hash Cond: \(\w+\.conversation_id = l(_\d)?\.id\)/,
  )
})

test('a plan for any values is kept for a send that comes alone', async () => {
  const one = openDatabase(database.url, 'messaging', { max: 1 })
  onTestFinished(() => one.end())
  const of = { mayBegin: [true], leaseMs: 15_000, burstMs: 250, dueFrom: null, holder: ++holder }
  for (let n = 0; n < 10; n++) await insertSends(one, [sendTo(newId('cnv'))], of)
  // Postgres compares with what the first five were expected to cost.
  const plans = await one`
    select custom_plans::int, generic_plans::int from pg_prepared_statements
    where statement like '%insert into monthly_sends%' and statement not like '%pg_prepared%'
  `
  expect(plans).toEqual([{ customPlans: 5, genericPlans: 5 }])
})

test('the first send of each lane begins in the statement that accepts it; what is behind it waits', async () => {
  const [one, other] = [newId('cnv'), newId('cnv')]
  const inserted = await insert([sendTo(one), sendTo(one), sendTo(other)])
  expect(inserted.map(({ accepted }) => accepted)).toEqual([true, true, true])
  expect(isBegun(inserted)).toEqual([true, false, true])
  expect(inserted[0]?.begun).toMatchObject({
    lane: { id: one, group: String(phone), arrivals: '1', failures: 0, pacedMs: 0 },
    sender: { sealedToken: 'sealed', phoneNumber: '+15550001111', resendUnknown: false, relaxed: false },
  })
  expect(await openSends(one)).toEqual([
    { attempts: 1, begun: true },
    { attempts: 0, begun: false },
  ])
  expect(await laneOf(one)).toMatchObject({ isHeld: true, isDue: true })
})

test('what begins is charged to the pace of its number', async () => {
  await sql`update pace set tat = now() + interval '100 ms' where grp = ${String(phone)}`
  const [before] = await sql<{ tat: Date }[]>`select tat from pace where grp = ${String(phone)}`
  await insert([sendTo(newId('cnv')), sendTo(newId('cnv'))], 1)
  const [after] = await sql<{ isLater: boolean }[]>`
    select tat - ${before?.tat ?? null} >= interval '12 ms' as is_later from pace where grp = ${String(phone)}
  `
  expect(after).toEqual({ isLater: true })
})

bothWays('a send is charged to the pace of its number, and begins only within it', async () => {
  await sql`update pace set tat = now(), interval_ms = 200 where grp = ${String(phone)}`
  expect(isBegun(await insert([sendTo(newId('cnv'))]))).toEqual([true])
  expect(await insert([sendTo(newId('cnv'))])).toMatchObject([{ accepted: true, due: true, begun: null }])
})

bothWays('of a send that is refused nothing is there, also not its key', async () => {
  await setSender('customer_suspended')
  const send = sendTo(newId('cnv'), { key: newId('req'), fingerprint: 'f', answer: '{}' })
  expect(await insert([send])).toMatchObject([{ refusal: 'customer_suspended', accepted: false, begun: null }])
  const left = await sql`
    select from messages where id = ${send.id} union all select from idempotency.keys where key = ${send.key}
  `
  expect(left).toHaveLength(0)
})

bothWays('a quota is for new sends: one that is sent again within its 24 hours is refused as known', async () => {
  const state = newAccountState({ phone_number_id: String(++phone) })
  const settings = { ...state.settings, messages_per_month: 1 }
  await sql.begin((tx) => storeSender(tx, noKeys, { ...state, settings }))
  const owner = { organization_id: state.organization_id }
  const keyed = { ...owner, key: newId('req'), fingerprint: 'f', answer: '{}' }
  const usedUp = [{ refusal: 'quota_used_up', accepted: false }]
  expect(await insert([sendTo(newId('cnv'), keyed)])).toMatchObject([{ accepted: true }])
  expect(await insert([sendTo(newId('cnv'), owner)])).toMatchObject(usedUp)
  expect(await insert([sendTo(newId('cnv'), keyed)])).toMatchObject([{ refusal: null, accepted: false }])
  await sql`update idempotency.keys set created_at = now() - interval '25 hours' where key = ${keyed.key}`
  expect(await insert([sendTo(newId('cnv'), keyed)])).toMatchObject(usedUp)
})

bothWays('no more begin than slots are free, and than the number may send', async () => {
  const few = await insert([sendTo(newId('cnv')), sendTo(newId('cnv'))], 1)
  expect(isBegun(few)).toEqual([true, false])
  expect(few.map(({ due }) => due)).toEqual([false, true])
  await sql`update send_lanes set due_at = null where grp = ${String(phone)}`
  // As many as fit into the burst, however long the statement takes.
  await sql`update pace set tat = now(), interval_ms = 100 where grp = ${String(phone)}`
  const paced = await insert(Array.from({ length: 5 }, () => sendTo(newId('cnv'))))
  expect(isBegun(paced).filter(Boolean)).toHaveLength(2)
  await sql`update pace set tat = now(), interval_ms = 12.5 where grp = ${String(phone)}`
  expect(await insert([sendTo(newId('cnv'))], 0)).toMatchObject([{ accepted: true, due: true, begun: null }])
})

bothWays('a lane that is held, or that waits, takes its sends in their order', async () => {
  const lane = newId('cnv')
  expect(isBegun(await insert([sendTo(lane)]))).toEqual([true])
  expect(await insert([sendTo(lane)])).toMatchObject([{ accepted: true, due: false, begun: null }])
  expect(await laneOf(lane)).toMatchObject({ arrivals: '2', isHeld: true })
  await sql`update send_lanes set held_until = '-infinity', due_at = now() + interval '1 hour' where id = ${lane}`
  expect(await insert([sendTo(lane)])).toMatchObject([{ accepted: true, begun: null }])
})

bothWays(
  'whether anything of a number waits is asked from where the dispatcher says that nothing was due before',
  async () => {
    const [early, late] = [newId('cnv'), newId('cnv')]
    const since = (seconds: number) => Date.now() / 1_000 - seconds
    await insert([sendTo(early)], 0)
    await sql`update send_lanes set due_at = now() - interval '1 minute' where id = ${early}`
    expect(isBegun(await insert([sendTo(newId('cnv'))], 100, since(90)))).toEqual([false])
    await sql`update send_lanes set due_at = now() - interval '1 minute'`
    expect(isBegun(await insert([sendTo(newId('cnv'))], 100, since(30)))).toEqual([true])
    await insert([sendTo(late)], 0)
    expect(isBegun(await insert([sendTo(newId('cnv'))], 100, since(30)))).toEqual([false])
  },
)

bothWays('what has waited for a claim goes first: nothing of its number begins before it', async () => {
  await insert([sendTo(newId('cnv'))], 0)
  expect(isBegun(await insert([sendTo(newId('cnv'))]))).toEqual([false])
  phone++
  await setSender()
  expect(isBegun(await insert([sendTo(newId('cnv'))]))).toEqual([true])
})

bothWays('a send with a file, and one whose number is being claimed elsewhere, wait for their claim', async () => {
  const file = sendTo(newId('cnv'), { media: { id: newId('med'), path: [] } })
  expect(await insert([file])).toMatchObject([{ accepted: true, due: true, begun: null }])
  phone++
  await setSender()
  await sql.begin(async (tx) => {
    await tx`select from pace where grp = ${String(phone)} for update`
    expect(await insert([sendTo(newId('cnv'))])).toMatchObject([{ accepted: true, due: true, begun: null }])
  })
})

bothWays('a send that was read before its number was refused does not begin after', async () => {
  const key = newId('req')
  const holdsKey = await sql.reserve()
  await holdsKey`begin`
  await holdsKey`
    insert into idempotency.keys (organization_id, key, fingerprint, status, answer)
    values (${organizationId}, ${key}, '', 200, '')
  `
  const lane = newId('cnv')
  let inserting: ReturnType<typeof insert> | undefined
  // A key is waited for a moment only: once it is, nothing is left to do but to commit.
  await setSender('customer_suspended', async () => {
    // Waits for the key, and has read by then that nothing stands against the number.
    inserting = insert([sendTo(lane, { key, fingerprint: 'f', answer: '{}' })])
    await untilSomebodyWaits(sql)
  })
  await holdsKey`rollback`
  holdsKey.release()
  expect(await inserting).toMatchObject([{ refusal: null, accepted: true, begun: null }])
  expect(await openSends(lane)).toEqual([{ attempts: 0, begun: false }])
})

bothWays('a number that has moved begins no send for the organization that had it', async () => {
  await sql`update pace set open_for = ${newId('org')} where grp = ${String(phone)}`
  expect(isBegun(await insert([sendTo(newId('cnv'))]))).toEqual([false])
})

bothWays('a lane that was set apart while another one had its number is at the pace of the number again', async () => {
  const lane = newId('cnv')
  const left = leftGroup({ organizationId, phoneNumberId: String(phone) })
  await sql`insert into send_lanes (id, grp) values (${lane}, ${left})`
  const [inserted] = await insert([sendTo(lane)])
  expect(inserted?.begun).toMatchObject({ lane: { id: lane, group: String(phone) } })
})

test('what began in a statement whose answer was lost is given back by its holder, and by nobody else', async () => {
  const lane = newId('cnv')
  const sends = [sendTo(lane), sendTo(lane)]
  await insert(sends)
  await letGo({ sql, log }, sends, holder + 1, performance.now())
  expect(await openSends(lane)).toMatchObject([{ begun: true }, { begun: false }])
  await letGo({ sql, log }, sends, holder, performance.now())
  expect(await openSends(lane)).toEqual([
    { attempts: 0, begun: false },
    { attempts: 0, begun: false },
  ])
  expect(await laneOf(lane)).toMatchObject({ isHeld: false, isDue: true })
})

test('what begins in a statement that still runs when its connection is lost is given back once it is there', async () => {
  const lane = newId('cnv')
  const sends = [sendTo(lane)]
  const of = { mayBegin: [true], leaseMs: 15_000, burstMs: 250, dueFrom: null, holder: ++holder }
  const releasing = await sql.begin(async (tx) => {
    await insertSends(tx as unknown as Sql, sends, of)
    const released = letGo({ sql, log }, sends, holder, performance.now())
    await Promise.race([released, sleep(100)])
    return { released }
  })
  await releasing.released
  expect(await openSends(lane)).toEqual([{ attempts: 0, begun: false }])
})

test('the lanes of sends that are given back are taken in one order, as by whoever accepts sends for them', async () => {
  const lanes = Array.from({ length: 8 }, () => newId('cnv')).toSorted()
  const sends = lanes.map((lane) => sendTo(lane))
  expect(isBegun(await insert(sends))).toEqual(lanes.map(() => true))
  // From here on they lie in another order than that of their ids.
  for (const lane of lanes.toReversed())
    await sql`update send_lanes set due_at = due_at + interval '1 ms' where id = ${lane}`
  const one = openDatabase(database.url, 'messaging', { max: 1 })
  onTestFinished(() => one.end())
  await one`set enable_indexscan = off`
  const { releasing, free } = await sql.begin(async (tx) => {
    await tx`select from send_lanes where id = ${lanes[0] ?? ''} for update`
    const released = letGo({ sql: one, log }, sends, holder, performance.now())
    await untilSomebodyWaits(sql)
    const others = await sql`select id from send_lanes where id = any(${lanes}) for update skip locked`
    return { releasing: released, free: others.length }
  })
  await releasing
  expect(free).toBe(7)
  expect(await laneOf(lanes[0] ?? '')).toMatchObject({ isHeld: false, isDue: true })
})

test('organizations in one batch do not meet: each has its own keys, its own numbers, its own quota', async () => {
  const other = newAccountState({ phone_number_id: String(++phone) })
  const settings = { ...other.settings, messages_per_month: 1 }
  await sql.begin((tx) => storeSender(tx, noKeys, { ...other, settings }))
  const [mine, key] = [String(phone - 1), newId('req')]
  const keyed = { key, fingerprint: 'f', answer: '{}', phone_number_id: mine }
  expect(await insert([sendTo(newId('cnv'), keyed)])).toMatchObject([{ accepted: true }])
  const theirs = { organization_id: other.organization_id, phone_number_id: other.phone_number_id }
  const inserted = await insert([
    sendTo(newId('cnv'), keyed),
    sendTo(newId('cnv'), { ...theirs, key, fingerprint: 'f', answer: '{}' }),
    sendTo(newId('cnv'), { ...theirs, phone_number_id: mine }),
    sendTo(newId('cnv')),
  ])
  expect(inserted).toMatchObject([
    { known: true, refusal: null, accepted: false },
    { known: true, refusal: null, accepted: true },
    { known: false, accepted: false, begun: null },
    { known: false, accepted: false, begun: null },
  ])
})

test('the last of a quota is for a send that may go out, though others that may not came before it', async () => {
  const owner = { organization_id: newId('org') }
  const [refused, unknown, open] = [String(++phone), '999999999999', String(++phone)]
  for (const [phone_number_id, refusal] of [
    [refused, 'customer_suspended'],
    [open, null],
  ] as const) {
    const state = newAccountState({ ...owner, phone_number_id, refusal })
    const settings = { ...state.settings, messages_per_month: 1 }
    await sql.begin((tx) => storeSender(tx, noKeys, { ...state, settings }))
  }
  const sends = [refused, unknown, open].map((phone_number_id) => sendTo(newId('cnv'), { ...owner, phone_number_id }))
  expect(await insert(sends)).toMatchObject([{ refusal: 'customer_suspended' }, { known: false }, { accepted: true }])
})

test('the last of a quota is for a send that is new, though sends that are made again came before it', async () => {
  const state = newAccountState({ phone_number_id: String(++phone) })
  const settings = { ...state.settings, messages_per_month: 2 }
  await sql.begin((tx) => storeSender(tx, noKeys, { ...state, settings }))
  const owner = { organization_id: state.organization_id, phone_number_id: state.phone_number_id }
  const keyed = { ...owner, key: newId('req'), fingerprint: 'f', answer: '{}' }
  expect(await insert([sendTo(newId('cnv'), keyed)])).toMatchObject([{ accepted: true }])
  const again = sendTo(newId('cnv'), keyed)
  expect(await insert([again, sendTo(newId('cnv'), owner), sendTo(newId('cnv'), owner)])).toMatchObject([
    { refusal: null, accepted: false },
    { refusal: null, accepted: true },
    { refusal: 'quota_used_up', accepted: false },
  ])
})

bothWays('a key past its 24 hours that is used anew stands for the new send as long', async () => {
  const keyed = { key: newId('req'), fingerprint: 'f', answer: '{}' }
  const insertOne = async () => (await insert([sendTo(newId('cnv'), keyed)])).map(({ accepted }) => accepted)
  expect(await insertOne()).toEqual([true])
  // Of an operation whose answer is a secret.
  await sql`update idempotency.keys set created_at = now() - interval '25 hours', sealed = true where key = ${keyed.key}`
  expect(await insertOne()).toEqual([true])
  expect(await insertOne()).toEqual([false])
  expect(await sql`select sealed from idempotency.keys where key = ${keyed.key}`).toEqual([{ sealed: false }])
})

test('a lane that sleeps beside an open send is found and woken, one that is held or waits is left alone', async () => {
  const [asleep, gone, held, waiting] = [newId('cnv'), newId('cnv'), newId('cnv'), newId('cnv')]
  await insert(
    [asleep, gone, held, waiting].map((lane) => sendTo(lane)),
    0,
  )
  await sql`update send_lanes set due_at = null where id = any(${[asleep, held]})`
  await sql`update send_lanes set held_until = now() + interval '1 hour' where id = ${held}`
  await sql`update send_lanes set due_at = now() + interval '1 hour' where id = ${waiting}`
  await sql`delete from send_lanes where id = ${gone}`
  await wakeSleepers(sql)
  const isDue = async (id: string) => (await laneOf(id))?.isDue ?? null
  expect(await Promise.all([asleep, gone, held, waiting].map(isDue))).toEqual([true, true, null, false])
})

test('a lane that begins to wait just when it is found asleep is left alone', async () => {
  const lane = newId('cnv')
  await insert([sendTo(lane)], 0)
  await sql`update send_lanes set due_at = null where id = ${lane}`
  let waking: Promise<number> | undefined
  await sql.begin(async (tx) => {
    await tx`update send_lanes set due_at = now() + interval '1 hour' where id = ${lane}`
    waking = wakeSleepers(sql)
    await untilSomebodyWaits(sql)
  })
  expect(await waking).toBe(0)
  expect(await laneOf(lane)).toMatchObject({ isDue: false })
})

test('sleeping lanes are found behind long queues, and no other lane is waited for', async () => {
  const [first, busy, asleep] = [newId('cnv'), newId('cnv'), newId('cnv')].toSorted() as [string, string, string]
  await insert(
    [first, first, first, busy, asleep].map((lane) => sendTo(lane)),
    0,
  )
  await sql`update send_lanes set due_at = null where id = ${asleep}`
  await sql.begin(async (tx) => {
    await tx`select from send_lanes where id = any(${[first, busy]}) for update`
    await wakeSleepers(sql, 2)
  })
  expect((await laneOf(asleep))?.isDue).toBe(true)
})
