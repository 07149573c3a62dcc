import { openDatabase, type Sql } from '@app/shared/database/database.ts'
import { newAccountState } from '@app/test/account-state.ts'
import { createTestDatabase, type TestDatabase } from '@app/test/database.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { storeSender } from '../senders/put-sender.ts'
import { newSend } from '../testing/sends.ts'
import { insertSends } from './insert-sends.ts'
import { type OpenSend, takeHeads } from './open-send.ts'
import type { Outcome } from './outcome.ts'
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

/** The plan of the statement that holds these words. */
async function planOf(words: string, values: string) {
  const [kept] = await sql<{ name: string }[]>`
    select name from pg_prepared_statements where strpos(statement, ${words}) > 0 and strpos(statement, 'pg_prepared') = 0
  `
  const lines = await sql.unsafe(`explain execute "${kept?.name}" ${values}`)
  return lines.map((line) => String(line['QUERY PLAN'])).join('\n')
}

/** How a plan reads open sends; a reading that is no look-up is an error. */
function looksOf(plan: string) {
  const looks = [...plan.matchAll(/using (\w+) on sends\b.*\n *Index Cond: \(*(\w+) (?:=|>=)/g)]
  expect(plan.match(/Scan.* on sends\b/g)).toHaveLength(looks.length)
  return looks.map(([, index, column]) => `${index} by ${column}`)
}

test('open sends are looked up by their number or their lane, although few are open when the plan is made', async () => {
  await database.admin`vacuum (analyze) messaging.sends, messaging.messages, messaging.send_lanes`
  await writeOutcomes(sql, [], { at: new Date(), told: [], lanes: [] })
  const plan = await planOf('given_back', "('[]', '[]', '[]', '[]')")
  expect(looksOf(plan)).toEqual([...Array.from({ length: 3 }, () => 'sends_pkey by seq'), 'sends_head by lane'])
})

test('the first sends of lanes are looked up by lane, with a plan of the same time', async () => {
  await sql.begin((tx) => takeHeads(tx, []))
  const plan = await planOf('heads as', "('{}')")
  expect(looksOf(plan)).toEqual(['sends_head by lane', 'sends_pkey by seq'])
})

test('of a send that was found begun nothing is forgotten by a holder that came too late to look at it', async () => {
  const state = newAccountState()
  await sql.begin((tx) => storeSender(tx, { current: '', byId: new Map() }, state))
  const { organization_id, phone_number_id } = state
  const send = newSend('begun', '+15550123456', { organization_id, phone_number_id })
  const [inserted] = await insertSends(sql, [send], { slots: 1, leaseMs: 60_000, burstMs: 250, holder: 1 })
  const lane = inserted?.begun?.lane
  if (!lane) throw new Error('it did not begin')
  const take = () => sql.begin((tx) => takeHeads(tx, [{ lane, free: 1, fresh: true }]))
  const [item] = await take()
  expect(item).toMatchObject({ id: send.id, step: 'orphaned', attempts: 1 })
  const done = item ? [{ item, lane, outcome: null }] : []
  await writeOutcomes(sql, done, { at: new Date(), told: [], lanes: [{ lane, waitMs: 0 }] })
  expect(await take()).toMatchObject([{ step: 'orphaned', attempts: 1 }])
})

test('what an earlier attempt came to, recorded again since the answer was lost, changes nothing of a later one', async () => {
  const state = newAccountState()
  await sql.begin((tx) => storeSender(tx, { current: '', byId: new Map() }, state))
  const { organization_id, phone_number_id } = state
  const send = newSend('late', '+15550123456', { organization_id, phone_number_id })
  await insertSends(sql, [send], { slots: 0, leaseMs: 60_000, burstMs: 250, holder: 1 })
  const lane = {
    id: send.conversation_id,
    group: phone_number_id,
    arrivals: '1',
    heldUntil: '',
    failures: 0,
    pacedMs: 0,
  }
  const begin = async () => {
    const [item] = await sql.begin((tx) => takeHeads(tx, [{ lane, free: 1, fresh: true }]))
    if (item?.step !== 'send') throw new Error('it did not begin')
    return item
  }
  const write = (item: OpenSend, outcome: Outcome) =>
    writeOutcomes(sql, [{ item, lane, outcome }], { at: new Date(), told: [], lanes: [] })
  const attempt = { httpStatus: null, upstreamCode: null, detail: null }
  const again: Outcome = {
    kind: 'again',
    waitMs: 0,
    slowNumberMs: 0,
    letOut: false,
    attempt: { ...attempt, outcome: 'unreachable' },
  }
  const first = await begin()
  await write(first, again)
  await write(await begin(), { kind: 'park', attempt: { ...attempt, outcome: 'unknown' } })
  await write(first, again)
  const rows = await sql`
    select attempts, parked_until > now() as is_parked from sends where message_id = ${send.id}
  `
  expect(rows).toEqual([{ attempts: 2, isParked: true }])
})
