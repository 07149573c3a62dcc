import { openDatabase, type Sql } from '@app/shared/database/database.ts'
import { newAccountState } from '@app/test/account-state.ts'
import { createTestDatabase, type TestDatabase } from '@app/test/database.ts'
import { keptPlan } from '@app/test/kept-plan.ts'
import { until } from '@app/test/until.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Lane, laneColumns } from '@app/shared/mailbox/lanes.ts'
import { storeSender } from '../senders/put-sender.ts'
import { newSend } from '../testing/sends.ts'
import { type AcceptableSend, insertSends } from './insert-sends.ts'
import { type OpenSend, takeHeads } from './open-send.ts'
import type { Outcome } from './outcome.ts'
import { settleSends } from './settle-sends.ts'
import { writeOutcomes } from './write-outcomes.ts'

let database: TestDatabase
let sql: Sql
beforeAll(async () => {
  database = await createTestDatabase('messaging')
  // One connection, whose statements can be asked for.
  sql = openDatabase(database.url, 'messaging', { max: 1 })
})
afterAll(async () => {
  await sql.end()
  await database.drop()
})

/** How a plan reads open sends; a reading that is no look-up is an error. */
function looksOf(plan: string) {
  const looks = [...plan.matchAll(/using (\w+) on sends\b.*\n *Index Cond: \(*(\w+) (?:=|>=)/g)]
  expect(plan.match(/Scan.* on sends\b/g)).toHaveLength(looks.length)
  return looks.map(([, index, column]) => `${index} by ${column}`)
}

/** An accepted send, and what claims its lane and begins it. */
async function acceptOne(state = newAccountState(), changes: Partial<AcceptableSend> = {}) {
  await sql.begin((tx) => storeSender(tx, { current: '', byId: new Map() }, state))
  const { organization_id, phone_number_id } = state
  const send = newSend('one', '+15550123456', { organization_id, phone_number_id, ...changes })
  await insertSends(sql, [send], { mayBegin: [], leaseMs: 60_000, burstMs: 250, dueFrom: null, holder: 1 })
  const [lane] = await sql<Lane[]>`select ${laneColumns(sql, 'l')} from send_lanes l where id = ${send.conversation_id}`
  if (!lane) throw new Error('it has no lane')
  const take = async () => {
    const [item] = await sql.begin((tx) => takeHeads(tx, [{ lane, free: 1, fresh: true, heldMs: 0 }]))
    if (!item) throw new Error('nothing waits')
    return item
  }
  const write = (item: OpenSend, outcome: Outcome | null) =>
    writeOutcomes(sql, [{ item, lane, outcome }], { at: new Date(), told: [], lanes: [] })
  return { state, send, lane, take, write }
}

const attempted = { httpStatus: null, upstreamCode: null, detail: null }
const again: Outcome = {
  kind: 'again',
  waitMs: 0,
  slowNumberMs: 0,
  letOut: false,
  attempt: { ...attempted, outcome: 'unreachable' },
}

/** Sends, attempts, the four columns of events, lanes. */
const nothing = [...Array<string>(2).fill("'[]'"), ...Array<string>(4).fill("''"), "'[]'"]

test('open sends are looked up by their number or their lane, although few are open when the plan is made', async () => {
  await database.admin`vacuum (analyze) messaging.sends, messaging.messages, messaging.send_lanes`
  await writeOutcomes(sql, [], { at: new Date(), told: [], lanes: [] })
  const plan = await keptPlan(sql, ['given_back'], nothing)
  expect(looksOf(plan)).toEqual([...Array.from({ length: 4 }, () => 'sends_pkey by seq'), 'sends_head by lane'])
})

test('lanes are given back by their key, although to read all of a few hundred is expected to cost less', async () => {
  await database.admin`
    insert into messaging.send_lanes (id, grp) select 'cnv_' || n, '106540352242922' from generate_series(1, 500) n
  `
  await database.admin`vacuum (analyze) messaging.send_lanes`
  await writeOutcomes(sql, [], { at: new Date(), told: [], lanes: [] })
  const plan = await keptPlan(sql, ['given_back'], nothing)
  expect(plan).toMatch(/on send_lanes lane .*\n *(Index|Recheck) Cond: \(id = /)
})

test('sends that go on together are not compared with each other', async () => {
  const plan = await keptPlan(sql, ['given_back'], nothing)
  expect(plan).toMatch(/CTE kept\n.*Update on sends s .*(\n.*InitPlan.*\n.*CTE Scan on o.*)\n +->  Hash Join/)
})

test('the first sends of lanes are looked up by lane, with a plan of the same time', async () => {
  await sql.begin((tx) => takeHeads(tx, []))
  const plan = await keptPlan(sql, ['heads as'], ["'{}'"])
  expect(looksOf(plan)).toEqual(['sends_head by lane', 'sends_pkey by seq'])
})

test('of a send that was found begun nothing is forgotten by a holder that came too late to look at it', async () => {
  const state = newAccountState()
  await sql.begin((tx) => storeSender(tx, { current: '', byId: new Map() }, state))
  const { organization_id, phone_number_id } = state
  const send = newSend('begun', '+15550123456', { organization_id, phone_number_id })
  const [inserted] = await insertSends(sql, [send], {
    mayBegin: [true],
    leaseMs: 60_000,
    burstMs: 250,
    dueFrom: null,
    holder: 1,
  })
  const lane = inserted?.begun?.lane
  if (!lane) throw new Error('it did not begin')
  const take = () => sql.begin((tx) => takeHeads(tx, [{ lane, free: 1, fresh: true, heldMs: 0 }]))
  const [item] = await take()
  expect(item).toMatchObject({ id: send.id, step: 'orphaned', attempts: 1 })
  const done = item ? [{ item, lane, outcome: null }] : []
  await writeOutcomes(sql, done, { at: new Date(), told: [], lanes: [{ lane, waitMs: 0 }] })
  expect(await take()).toMatchObject([{ step: 'orphaned', attempts: 1 }])
})

test('what an earlier attempt came to, recorded again since the answer was lost, changes nothing of a later one', async () => {
  const { send, take, write } = await acceptOne()
  const first = await take()
  await write(first, again)
  const second = await take()
  expect(second).toMatchObject({ step: 'send', attempts: 2 })
  await write(second, { kind: 'park', attempt: { ...attempted, outcome: 'unknown' } })
  await write(first, again)
  const rows = await sql`
    select attempts, parked_until > now() as is_parked from sends where message_id = ${send.id}
  `
  expect(rows).toEqual([{ attempts: 2, isParked: true }])
})

const photo = { id: 'med_1', path: ['id'] }
const uploaded: Outcome = { kind: 'uploaded', upstreamMediaId: '1' }
const parked: Outcome = { kind: 'park', attempt: { ...attempted, outcome: 'unknown' } }

test.each<[string, Partial<AcceptableSend>, Outcome | null]>([
  ['its file is at the platform', { media: photo }, uploaded],
  ['its file is on its way', { media: photo }, { kind: 'uploading', waitMs: 0 }],
  ['it came too late for its call', {}, null],
])(
  'that %s, recorded again since the answer was lost, forgets no attempt of the same number',
  async (_, changes, none) => {
    const { send, take, write } = await acceptOne(newAccountState(), changes)
    const first = await take()
    await write(first, none)
    // Brought by another lane's look meanwhile, if not by this one.
    await sql`update sends set upstream_media_id = '1' where message_id = ${send.id} and media is not null`
    const open = () => sql`
    select attempts, begun_at is not null as is_begun, parked_until > now() as is_parked from sends where message_id = ${send.id}
  `
    const second = await take()
    expect(second).toMatchObject({ step: 'send', attempts: 1 })
    await write(first, none)
    expect(await open()).toEqual([{ attempts: 1, isBegun: true, isParked: null }])
    await write(second, parked)
    await write(first, none)
    expect(await open()).toEqual([{ attempts: 1, isBegun: false, isParked: true }])
  },
)

test('a call that was taken for one whose holder had died, and was not made, is made: its record is that of the one made', async () => {
  const { send, take, write } = await acceptOne()
  const frozen = await take()
  const found = await take()
  expect(found).toMatchObject({ step: 'orphaned', attempts: 1 })
  await write(found, parked)
  await write(frozen, null)
  const second = await take()
  expect(second).toMatchObject({ step: 'send', attempts: 1 })
  await write(second, parked)
  await write(frozen, null)
  await write(found, parked)
  expect(await take()).toMatchObject({ step: 'parked', attempts: 1 })
  const attempts = await sql`select begun_at from send_attempts where message_id = ${send.id}`
  expect(attempts).toEqual([{ begunAt: second.begunAt }])
})

test('of two calls of one attempt that are recorded together, the record is that of the later one', async () => {
  const { send, lane, take, write } = await acceptOne()
  const frozen = await take()
  const found = await take()
  await write(found, parked)
  await write(frozen, null)
  const second = await take()
  const done = [second, found].map((item) => ({ item, lane, outcome: parked }))
  await writeOutcomes(sql, done, { at: new Date(), told: [], lanes: [] })
  const attempts = await sql`select begun_at from send_attempts where message_id = ${send.id}`
  expect(attempts).toEqual([{ begunAt: second.begunAt }])
})

test.each([
  ['a failure', false],
  ['an outcome that stays unknown', true],
])('%s that is recorded again, since the answer was lost, is told once', async (_, unknown) => {
  const { send, lane, take } = await acceptOne()
  const failure = { code: 'recipient_not_reachable', message: 'no', providerCode: 131026 }
  const outcome: Outcome = { kind: 'failed', failure, unknown, attempt: null }
  const ended = { done: [{ item: await take(), lane, outcome }], empty: [] }
  await settleSends(sql, ended, { publicUrl: '' })
  await settleSends(sql, ended, { publicUrl: '' })
  const events = await sql`select subject from outbox where strpos(id, ${send.id}) > 0`
  expect(events).toEqual([{ subject: 'event.messaging.message-status-reported' }])
})

const subjectsOf = async ({ id }: AcceptableSend) => {
  const rows = await sql<{ subject: string }[]>`select subject from outbox where strpos(id, ${id}) > 0 order by seq`
  return rows.map(({ subject }) => subject)
}

const unasked = (code: string, unknown = false): Outcome => {
  const failure = { code, message: 'no', providerCode: null }
  return { kind: 'failed', failure, unknown, attempt: null }
}
const sent: Outcome = { kind: 'sent', upstreamId: 'wamid.LATE', waId: null, attempt: { ...attempted, outcome: 'sent' } }

test('a refusal that was found before somebody else began a call fails nothing, however late it is recorded', async () => {
  const { state, send, lane, take } = await acceptOne()
  const settle = (item: OpenSend, outcome: Outcome) =>
    settleSends(sql, { done: [{ item, lane, outcome }], empty: [] }, { publicUrl: '' })
  const put = (changes: object) =>
    sql.begin((tx) => storeSender(tx, { current: '', byId: new Map() }, { ...state, ...changes }))
  await put({ version: 2, refusal: 'customer_suspended' })
  const frozen = await take()
  expect(frozen).toMatchObject({ step: 'refused' })
  await put({ version: 3 })
  const begun = await take()
  expect(begun).toMatchObject({ step: 'send', attempts: 1 })
  await settle(frozen, unasked('customer_suspended'))
  expect(await sql`select status, rank from messages where id = ${send.id}`).toEqual([{ status: 'queued', rank: 0 }])
  await settle(begun, sent)
  expect(await sql`select status, rank from messages where id = ${send.id}`).toEqual([{ status: 'sent', rank: 3 }])
  expect(await subjectsOf(send)).toEqual(['event.messaging.message-sent'])
})

test('an answer that comes together with what was made of its send meanwhile counts, is recorded, and told once', async () => {
  const { send, lane, take, write } = await acceptOne()
  const frozen = await take()
  await write(await take(), parked)
  await sql`update sends set parked_until = now() where message_id = ${send.id}`
  const found = await take()
  expect(found).toMatchObject({ step: 'unknown' })
  const done = [
    { item: found, lane, outcome: unasked('delivery_unknown', true) },
    { item: frozen, lane, outcome: sent },
  ]
  await settleSends(sql, { done, empty: [] }, { publicUrl: '' })
  expect(await sql`select status, rank from messages where id = ${send.id}`).toEqual([{ status: 'sent', rank: 3 }])
  expect(await sql`select outcome from send_attempts where message_id = ${send.id}`).toEqual([{ outcome: 'sent' }])
  expect(await sql`select from sends where message_id = ${send.id}`).toHaveLength(0)
  expect(await subjectsOf(send)).toEqual(['event.messaging.message-sent'])
})

test('what the platform says that it has is not failed by a refusal of a later attempt, though it had refused the one before', async () => {
  const { send, take, write } = await acceptOne()
  await write(await take(), again)
  const second = await take()
  await sql`update messages set upstream_id = 'wamid.REFUSED', rank = 3, status = 'sent' where id = ${send.id}`
  const failure = { code: 'recipient_not_reachable', message: 'no', providerCode: 131026 }
  await write(second, { kind: 'failed', failure, unknown: false, attempt: { ...attempted, outcome: 'refused' } })
  expect(await sql`select status, rank from messages where id = ${send.id}`).toEqual([{ status: 'sent', rank: 3 }])
})

test('what was attempted within its time to live does not expire, what was not does', async () => {
  const { send, lane, take } = await acceptOne()
  const pass = () => sql`update sends set expires_at = now() - interval '1 s' where message_id = ${send.id}`
  const item = await take()
  await pass()
  await settleSends(sql, { done: [{ item, lane, outcome: again }], empty: [] }, { publicUrl: '' })
  expect(await take()).toMatchObject({ step: 'send', attempts: 2 })
  const other = await acceptOne()
  await sql`update sends set expires_at = now() - interval '1 s' where message_id = ${other.send.id}`
  expect(await other.take()).toMatchObject({ step: 'expired', begunAt: null })
})

test('a send that leaves the order of its conversation does not wait for another try when its number is refused', async () => {
  const { state, send, lane, take } = await acceptOne()
  const item = await take()
  const refused = { ...state, version: 2, refusal: 'customer_suspended' as const }
  await sql.begin((tx) => storeSender(tx, { current: '', byId: new Map() }, refused))
  const outcome: Outcome = { ...again, waitMs: 60_000, letOut: true }
  await settleSends(sql, { done: [{ item, lane, outcome }], empty: [] }, { publicUrl: '' })
  const lanes = await sql`
    select due_at <= now() as is_due from send_lanes where id = (select lane from sends where message_id = ${send.id})
      and id <> ${lane.id}
  `
  expect(lanes).toEqual([{ isDue: true }])
})

test('a send that waits for a callback waits for all of its time, also when it is looked at before', async () => {
  const { send, lane, take } = await acceptOne()
  const outcome: Outcome = { kind: 'park', attempt: { ...attempted, outcome: 'unknown' } }
  await settleSends(sql, { done: [{ item: await take(), lane, outcome }], empty: [] }, { publicUrl: '' })
  expect(await take()).toMatchObject({ step: 'parked', parkedMs: expect.toSatisfy((ms: number) => ms > 50_000) })
  await sql`update sends set parked_until = now() - interval '1 s' where message_id = ${send.id}`
  expect(await take()).toMatchObject({ step: 'unknown', parkedMs: 0 })
})

test('a recipient who has got too many waits for the next, also if a callback was faster than the answer', async () => {
  const { send, lane, take } = await acceptOne()
  const item = await take()
  await sql`update messages set upstream_id = 'wamid.FAST', rank = 3, status = 'sent' where id = ${send.id}`
  const paced = { ...lane, pacedMs: 300_000 }
  await settleSends(sql, { done: [{ item, lane: paced, outcome: sent }], empty: [] }, { publicUrl: '' })
  const lanes = await sql`select due_at > now() + interval '30 s' as waits from send_lanes where id = ${lane.id}`
  expect(lanes).toEqual([{ waits: true }])
})

test('a send goes out with what its own organization has of a number that two have had', async () => {
  const first = newAccountState({ sealed_token: 'of the first' })
  const second = newAccountState({ phone_number_id: first.phone_number_id, sealed_token: 'of the second' })
  const [one, other] = [await acceptOne(first), await acceptOne(second)]
  expect(await one.take()).toMatchObject({ accountId: first.account_id, sealedToken: 'of the first' })
  expect(await other.take()).toMatchObject({ accountId: second.account_id, sealedToken: 'of the second' })
})

test('a callback that is just being applied is waited for: its send is not tried again', async () => {
  const { send, lane, take } = await acceptOne()
  const item = await take()
  const settling = await database.sql.begin(async (tx) => {
    await tx`update messages set upstream_id = 'wamid.JUST', rank = 3, status = 'sent' where id = ${send.id}`
    const job = settleSends(sql, { done: [{ item, lane, outcome: again }], empty: [] }, { publicUrl: '' })
    await until(async () =>
      expect(
        await database.admin`select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`,
      ).toHaveLength(1),
    )
    // Who records waits with no lane in hand, for which the callback could wait in turn.
    expect(await tx`select from send_lanes where id = ${lane.id} for update skip locked`).toHaveLength(1)
    return { job }
  })
  await settling.job
  expect(await sql`select 1 from sends where message_id = ${send.id}`).toEqual([])
})

test.each([
  ['unknown', 2],
  ['unreachable', 6],
] as const)(
  'what fails after an attempt that was %s has the rank %i: a callback may lift the first alone',
  async (before, rank) => {
    const { state, send, lane, take } = await acceptOne()
    await sql`
    insert into send_attempts (organization_id, message_id, attempt, begun_at, ended_at, outcome)
    values (${state.organization_id}, ${send.id}, 0, now(), now(), ${before})
  `
    const failure = { code: 'recipient_not_reachable', message: 'no', providerCode: 131026 }
    const outcome: Outcome = { kind: 'failed', failure, unknown: false, attempt: null }
    await settleSends(sql, { done: [{ item: await take(), lane, outcome }], empty: [] }, { publicUrl: '' })
    expect(await sql`select status, rank from messages where id = ${send.id}`).toEqual([{ status: 'failed', rank }])
  },
)
