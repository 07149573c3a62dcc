import { openDatabase, type Sql } from '@app/shared/database/database.ts'
import { newId } from '@app/shared/values/ids.ts'
import { keptPlan } from '@app/test/kept-plan.ts'
import { rowsRead } from '@app/test/rows-read.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { noteSentMessages } from './conversations/note-sent-messages.ts'
import { asking, newNumber, testDirectory, type TestDirectory } from './testing/app.ts'
import { telling } from './testing/changes.ts'
import { mostRows, stepsOf } from './testing/plan.ts'

/**
 * Postgres plans a prepared statement anew five times and then keeps a plan, until the table is analyzed, which may be a
 * minute later. What it kept while the tables were all but empty must still go by the right keys when they have grown.
 */
let directory: TestDirectory
let sql: Sql
let number: ReturnType<typeof asking>

const people = 4_000

beforeAll(async () => {
  directory = await testDirectory()
  for (const table of ['contacts', 'identities', 'conversations', 'inbounds']) {
    await directory.sql.unsafe(`alter table ${table} set (autovacuum_enabled = false)`)
  }
  // One connection, whose statements can be asked for.
  sql = openDatabase(directory.url, 'directory', { max: 1 })
  const app = directory.newInstance(sql)
  const { organizationId, phoneNumberId } = await newNumber(app)
  number = asking(app, organizationId, phoneNumberId)
  for (let n = 0; n < 12; n++) await writeBothWays(n)
  for (const table of ['contacts', 'conversations', 'members']) await directory.sql.unsafe(`analyze ${table}`)
  for (let n = 0; n < 8; n++) {
    await number.listConversations()
    await telling(app, { organizationId, phoneNumberId }).contacts([
      { wa_id: waIdOf(n), name: 'Ana', action: 'add', at: new Date(1_000 * n).toISOString() },
    ])
  }
  for (let n = 100; n < people; n += 500) {
    await Promise.all(Array.from({ length: 500 }, (_, i) => number.inbound({ wa_id: waIdOf(n + i) })))
  }
})
afterAll(async () => {
  await sql.end()
  await directory.drop()
})

const waIdOf = (n: number) => String(12_000_000_000 + n)

/** Everything that happens to a person, one by one: sent to, answered, sent to again. */
async function writeBothWays(n: number) {
  await number.open({ phone_number: `+${waIdOf(n)}` })
  await number.inbound({ wa_id: waIdOf(n), bsuid: `US.${n}` })
  const { conversation } = await number.inbound({ wa_id: waIdOf(n), bsuid: `US.${n}` })
  await noteSentMessages(sql, [sentIn(conversation.id)])
}

const sentIn = (conversationId: string) => ({
  organization_id: number.organizationId,
  conversation_id: conversationId,
  sent_at: new Date().toISOString(),
})

/** Runs the plan that was kept for the statement with this text in it; what it takes beside the rows (events) is empty. */
async function rowsReadBy(text: string, rows: object[]) {
  const [kept] = await sql<{ name: string; genericPlans: string; parameters: number }[]>`
    select name, generic_plans, cardinality(parameter_types) as parameters from pg_prepared_statements where strpos(statement, ${text}) > 0
  `
  expect(Number(kept?.genericPlans)).toBeGreaterThan(0)
  const json = JSON.stringify(rows).replaceAll("'", "''")
  const given = [json, ...Array.from({ length: (kept?.parameters ?? 1) - 1 }, () => '[]')].map((each) => `'${each}'`)
  return mostRows(stepsOf(await sql.unsafe(`explain (analyze, format json) execute "${kept?.name}" (${given.join()})`)))
}

const somebody = () => number.inbound({ wa_id: waIdOf(2_000) })

test('who a name means is found by its key', async () => {
  const identities = [{ kind: 'phone', value: `+${waIdOf(2_000)}` }]
  const question = { n: 0, organization_id: number.organizationId, phone_number_id: number.phoneNumberId, identities }
  expect(await rowsReadBy('marketing_preference, metadata from contacts', [question])).toBe(1)
})

const inboundOf = (of: { contact: { id: string }; conversation: { id: string } }, n: number) => ({
  n,
  organization_id: number.organizationId,
  phone_number_id: number.phoneNumberId,
  upstream_id: `wamid.new-${n}`,
  sent_at: new Date(),
  counts_unread: true,
  conversation_id: of.conversation.id,
  contact_id: of.contact.id,
})

test('a message is recorded by the key of its conversation', async () => {
  expect(await rowsReadBy('insert into inbounds', [inboundOf(await somebody(), 0)])).toBe(1)
})

/** A batch, as it comes under load. */
const together = 40

test('messages that come together are not compared with each other', async () => {
  const people = Array.from({ length: together }, (_, n) => number.inbound({ wa_id: waIdOf(1_000 + n) }))
  const inbounds = (await Promise.all(people)).map((of, n) => inboundOf(of, 1 + n))
  expect(await rowsReadBy('insert into inbounds', inbounds)).toBe(together)
})

test('a sent message is noted by the key of its conversation', async () => {
  const { conversation } = await somebody()
  expect(await rowsReadBy('update conversations v set last_message_at', [sentIn(conversation.id)])).toBe(1)
})

const newContact = () => {
  const id = newId('ctc')
  return {
    organization_id: number.organizationId,
    phone_number_id: number.phoneNumberId,
    id,
    identities: [{ kind: 'bsuid', value: `US.${id}` }],
    conversation_id: newId('cnv'),
    created_at: new Date(),
    conversation_created_at: new Date(),
    event: { id: 'new', subject: 'event.directory.contact-created', headers: {}, payload: '{}' },
  }
}

test('a contact is made by keys alone', async () => {
  expect(await rowsReadBy('insert into contacts', [newContact()])).toBe(1)
})

test('contacts that are made together are not compared with each other', async () => {
  const contacts = Array.from({ length: together }, newContact)
  expect(await rowsReadBy('insert into contacts', contacts)).toBe(together)
})

test('whose each conversation of a page is, is looked up by a key', async () => {
  const read = await sql.begin(async (tx) => {
    const app = { ...directory.app, sql: tx as unknown as Sql }
    const before = await rowsRead(tx, ['contacts'])
    const { data } = await asking(app, number.organizationId, number.phoneNumberId).listConversations()
    expect(data).toHaveLength(25)
    return (await rowsRead(tx, ['contacts'])) - before
  })
  expect(read).toBe(26)
})

test('who has the number of an entry of an address book is looked up by the whole key', async () => {
  const [ofNumber, entries] = [["'org_1'", "'106540352242922'"], "array['12000000001']"]
  const plan = await keptPlan(sql, ['select u.wa_id from unnest'], [entries, ...ofNumber, ...ofNumber])
  expect(plan.match(/on identities.*\n +Index Cond: .*\(value = /g)).toHaveLength(2)
})
