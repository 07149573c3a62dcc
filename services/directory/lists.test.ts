import { listContacts } from '@app/shared/contracts/contacts.ts'
import { listConversations } from '@app/shared/contracts/conversations.ts'
import type { Sql } from '@app/shared/database.ts'
import { newId, timeOf } from '@app/shared/ids.ts'
import { openPage } from '@app/shared/page.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { App } from './app.ts'
import { asking, newNumber, testDirectory, type TestDirectory } from './testing/app.ts'
import { mostRows, stepsOf } from './testing/plan.ts'

const tables = ['contacts', 'identities', 'conversations']
let directory: TestDirectory
let number: Awaited<ReturnType<typeof newNumber>>

/** 200,000 contacts with a conversation each, and as many of another organization and of another number. */
beforeAll(async () => {
  directory = await testDirectory()
  number = await newNumber(directory.app)
  const second = await newNumber(directory.app, { organization_id: number.organizationId })
  const other = await newNumber(directory.app, { phone_number_id: number.phoneNumberId })
  // It would hold the lock that `analyze` needs.
  for (const table of tables) await directory.sql.unsafe(`alter table ${table} set (autovacuum_enabled = false)`)
  await fill(directory.sql, number, 200_000)
  for (const crowd of [second, other]) await fill(directory.sql, crowd, 20_000)
  for (const table of tables) await directory.sql.unsafe(`analyze ${table}`)
}, 180_000)
afterAll(() => directory.drop())

type Number = Pick<typeof number, 'organizationId' | 'phoneNumberId'>

/** One conversation in 1,000 is pending, one in 10 has no message, and all are in no order. */
async function fill(sql: Sql, { organizationId, phoneNumberId }: Number, count: number) {
  await sql.begin(async (tx) => {
    await tx`set local statement_timeout = '60s'`
    const id = newId('ctc')
    const prefix = id.slice(4, 14)
    await tx`
      insert into contacts (organization_id, id, phone_number_id, phone_number, created_at, updated_at)
      select ${organizationId}, 'ctc_' || ${prefix}::text || lpad(n::text, 16, '0'), ${phoneNumberId},
        '+1' || (2000000000 + n), ${timeOf(id)}, ${timeOf(id)}
      from generate_series(1, ${count}::int) n
    `
    await tx`
      insert into identities (organization_id, phone_number_id, kind, value, contact_id)
      select organization_id, phone_number_id, 'phone', phone_number, id from contacts
      where organization_id = ${organizationId} and phone_number_id = ${phoneNumberId}
    `
    await tx`
      insert into conversations (organization_id, id, phone_number_id, contact_id, status, last_message_at, created_at)
      select organization_id, 'cnv_' || substr(id, 5), phone_number_id, id,
        case when substr(id, 28)::int % 1000 = 7 then 'pending' else 'open' end,
        case when substr(id, 28)::int % 10 > 0 then now() - substr(id, 26)::int * 7919 % 100003 * interval '1 minute' end,
        created_at
      from contacts where organization_id = ${organizationId} and phone_number_id = ${phoneNumberId}
    `
  })
}

/** The app, and the plan of the statement that it ran last. */
function explaining({ app, sql }: TestDirectory) {
  let last: ReturnType<Sql> | undefined
  const watched = new Proxy(sql, {
    apply(target, self, given: unknown[]) {
      const built: unknown = Reflect.apply(target, self, given)
      last = built as typeof last
      return built
    },
  })
  const watchedApp: App = { ...app, sql: watched }
  async function planOfLast() {
    return stepsOf(await sql<Record<string, unknown>[]>`explain (analyze, format json) ${last ?? sql``}`)
  }
  return { app: watchedApp, planOfLast }
}

/** How many rows the page read at most in one step, whichever way. */
async function readBy(list: (watched: ReturnType<typeof asking>) => Promise<{ data: unknown[] }>) {
  const { app, planOfLast } = explaining(directory)
  const { data } = await list(asking(app, number.organizationId, number.phoneNumberId))
  return { items: data.length, rows: mostRows(await planOfLast()) }
}

/** A cursor as the list itself gives it, at an item of our choice. */
function cursorAt(kind: 'contacts' | 'conversations', query: { status?: 'open' | 'pending' }, position: string) {
  const { app } = directory
  const list = kind === 'contacts' ? listContacts : listConversations
  const { page } = openPage(app.cursorKeys, list, { organizationId: number.organizationId }, query, {
    phone_number_id: number.phoneNumberId,
  })
  const rows = Array.from({ length: 26 }, () => position)
  const { next_cursor: cursor } = page(
    rows,
    (row) => row,
    (row) => row,
  )
  if (cursor === null) throw new Error('no second page')
  return cursor
}

const page = { items: 25, rows: 26 }

test('a page of contacts reads its rows alone, at the beginning and in the middle', async () => {
  expect(await readBy(({ listContacts: list }) => list())).toEqual(page)
  const cursor = cursorAt('contacts', {}, await idInTheMiddle('contacts'))
  expect(await readBy(({ listContacts: list }) => list({ cursor }))).toEqual(page)
})

test('a contact is found by number without reading others', async () => {
  expect(await readBy(({ listContacts: list }) => list({ phone_number: '+1 200 010 0000' }))).toEqual({
    items: 1,
    // The two names that a number may be.
    rows: 2,
  })
})

test('a page of conversations reads its rows alone: at the beginning, in the middle, among those without a message', async () => {
  expect(await readBy(({ listConversations: list }) => list())).toEqual(page)
  const id = await idInTheMiddle('conversations')
  for (const time of [new Date(Date.now() - 30 * 24 * 3_600_000).toISOString(), '']) {
    const cursor = cursorAt('conversations', {}, `${time}|${id}`)
    expect(await readBy(({ listConversations: list }) => list({ cursor }))).toEqual(page)
  }
})

test('a rare status is found without reading the others', async () => {
  expect(await readBy(({ listConversations: list }) => list({ status: 'pending' }))).toEqual(page)
  const cursor = cursorAt('conversations', { status: 'pending' }, `${new Date(0).toISOString()}|cnv_`)
  expect(await readBy(({ listConversations: list }) => list({ status: 'pending', cursor }))).toMatchObject({ items: 0 })
})

test("a contact's conversation is found without reading others", async () => {
  const id = await idInTheMiddle('contacts')
  expect(await readBy(({ listConversations: list }) => list({ contact_id: id }))).toEqual({ items: 1, rows: 1 })
  const status = 'open' as const
  expect((await readBy(({ listConversations: list }) => list({ contact_id: id, status }))).rows).toBe(1)
})

async function idInTheMiddle(table: 'contacts' | 'conversations') {
  const [row] = await directory.sql<{ id: string }[]>`
    select id from ${directory.sql(table)} where organization_id = ${number.organizationId}
      and phone_number_id = ${number.phoneNumberId} order by id offset 100000 limit 1
  `
  if (!row) throw new Error('nothing in the middle')
  return row.id
}
