import { listContacts } from '@app/shared/contracts/contacts.ts'
import { listConversations } from '@app/shared/contracts/conversations.ts'
import { openDatabase, type Sql, type TransactionSql } from '@app/shared/database/database.ts'
import { newId, timeOf } from '@app/shared/values/ids.ts'
import { openPage } from '@app/shared/api/page.ts'
import { rowsRead } from '@app/test/rows-read.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { App } from './app.ts'
import { asking, newNumber, testDirectory, type TestDirectory } from './testing/app.ts'
import { managing } from './testing/managing.ts'
import { mostRows, stepsOf } from './testing/plan.ts'

const tables = ['contacts', 'identities', 'conversations', 'labels', 'contact_labels']
let directory: TestDirectory
let number: Awaited<ReturnType<typeof newNumber>>

/** 40,000 contacts with a conversation each, and as many of another organization and of another number. */
beforeAll(async () => {
  directory = await testDirectory()
  number = await newNumber(directory.app)
  const second = await newNumber(directory.app, { organization_id: number.organizationId })
  const other = await newNumber(directory.app, { phone_number_id: number.phoneNumberId })
  // It would hold the lock that `analyze` needs.
  for (const table of tables) await directory.sql.unsafe(`alter table ${table} set (autovacuum_enabled = false)`)
  // No statement of the service takes so long.
  const patient = openDatabase(directory.url, 'directory', { max: 1, answerSeconds: 60 })
  await fill(patient, number, 40_000)
  for (const crowd of [second, other]) await fill(patient, crowd, 4_000)
  await patient.begin(async (tx) => {
    await tx`set local statement_timeout = '60s'`
    await tx.unsafe(`analyze ${tables.join(', ')}`)
  })
  await patient.end()
}, 60_000)
afterAll(() => directory.drop())

type Number = Pick<typeof number, 'organizationId' | 'phoneNumberId' | 'state'>

/**
 * A contact in 4,000 is Zoë, one in two Ana, one in three has a label. One conversation in 1,000 is pending, one in 10 has
 * no message, and all are in no order. A team has a label for 100 contacts.
 */
async function fill(sql: Sql, { organizationId, phoneNumberId, state }: Number, count: number) {
  await sql.begin(async (tx) => {
    await tx`set local statement_timeout = '60s'`
    const id = newId('ctc')
    const prefix = id.slice(4, 14)
    await tx`
      insert into contacts (organization_id, id, phone_number_id, phone_number, name, created_at, updated_at)
      select ${organizationId}, 'ctc_' || ${prefix}::text || lpad(n::text, 16, '0'), ${phoneNumberId},
        '+1' || (2000000000 + n), case when n % 4000 = 7 then 'Zoë Quill' when n % 2 = 0 then 'Ana Lima' end,
        ${timeOf(id)}, ${timeOf(id)}
      from generate_series(1, ${count}::int) n
    `
    await tx`
      insert into identities (organization_id, phone_number_id, kind, value, contact_id)
      select organization_id, phone_number_id, 'phone', phone_number, id from contacts
      where organization_id = ${organizationId} and phone_number_id = ${phoneNumberId}
    `
    await tx`
      insert into conversations (organization_id, id, phone_number_id, contact_id, status, last_message_at, created_at,
        updated_at)
      select organization_id, 'cnv_' || substr(id, 5), phone_number_id, id,
        case when substr(id, 28)::int % 1000 = 7 then 'pending' else 'open' end,
        case when substr(id, 28)::int % 10 > 0 then now() - substr(id, 26)::int * 7919 % 100003 * interval '1 minute' end,
        created_at, now() - substr(id, 26)::int * 6007 % 100003 * interval '1 minute'
      from contacts where organization_id = ${organizationId} and phone_number_id = ${phoneNumberId}
    `
    await tx`
      insert into labels (organization_id, id, team_id, name, created_at, updated_at)
      select ${organizationId}, 'lbl_' || ${prefix}::text || lpad(n::text, 16, '0'), ${state.team_id}, n::text,
        ${timeOf(id)}, ${timeOf(id)}
      from generate_series(1, ${count / 100}::int) n
    `
    await tx`
      insert into contact_labels (organization_id, contact_id, label_id, phone_number_id)
      select organization_id, id, 'lbl_' || ${prefix}::text || lpad('1', 16, '0'), phone_number_id from contacts
      where organization_id = ${organizationId} and phone_number_id = ${phoneNumberId} and substr(id, 28)::int % 3 = 0
    `
  })
}

/** The app, and the plan of the statement that it ran last. */
function explaining({ app, sql }: TestDirectory) {
  let last: ReturnType<Sql> | undefined
  const watch = <T extends object>(asker: T): T =>
    new Proxy(asker, {
      apply(target, self, given: unknown[]) {
        const built: unknown = Reflect.apply(target as unknown as () => unknown, self, given)
        last = built as typeof last
        return built
      },
      get: (target, name) =>
        name === 'begin'
          ? (run: (tx: TransactionSql) => unknown) => sql.begin((tx) => run(watch(tx)))
          : (Reflect.get(target, name) as unknown),
    })
  const watched = watch(sql)
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
function cursorAt(kind: 'contacts' | 'conversations', query: Record<string, string>, position: string) {
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
  expect(await readBy(({ listContacts: list }) => list({ phone_number: '+1 200 002 0000' }))).toEqual({
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

test('what is rare is found without reading the others, and what is common without reading them all', async () => {
  for (const search of ['zoë quill', 'Quill', 'Z', 'qu']) {
    // And the one of the other organization that had the number.
    expect(await readBy(({ listContacts: list }) => list({ search }))).toEqual({ items: 10, rows: 11 })
  }
  const nobody = await readBy(({ listContacts: list }) => list({ search: 'nobody at all' }))
  expect([nobody.items, nobody.rows < 10]).toEqual([0, true])
  // The pieces of a number are in some others, too.
  const digits = await readBy(({ listContacts: list }) => list({ search: '2000018735' }))
  expect([digits.items, digits.rows < 1_000]).toEqual([1, true])
  for (const search of ['ana', 'An', 'a lim']) {
    const { items, rows } = await readBy(({ listContacts: list }) => list({ search }))
    expect(items).toBe(25)
    expect(rows).toBeLessThanOrEqual(2_000)
  }
})

test('the contacts with a label are found without reading the others', async () => {
  const [row] = await directory.sql<{ id: string }[]>`
    select label_id as id from contact_labels where phone_number_id = ${number.phoneNumberId}
      and organization_id = ${number.organizationId} limit 1
  `
  const label_id = row?.id ?? ''
  expect(await readBy(({ listContacts: list }) => list({ label_id }))).toEqual(page)
  const cursor = cursorAt('contacts', { label_id }, await idInTheMiddle('contacts'))
  expect(await readBy(({ listContacts: list }) => list({ label_id, cursor }))).toEqual(page)
  const phone_number = '+12000020000'
  expect((await readBy(({ listContacts: list }) => list({ label_id, phone_number }))).rows).toBe(2)
})

test('what is rare is found among the many contacts of a label, without reading these', async () => {
  const { sql } = directory
  const labels = await sql<{ id: string }[]>`
    select label_id as id from contact_labels where organization_id = ${number.organizationId} limit 1
  `
  const label_id = labels[0]?.id ?? ''
  const inLabel = await sql<{ id: string }[]>`
    select c.id from contacts c join contact_labels l on l.contact_id = c.id and l.organization_id = c.organization_id
    where l.label_id = ${label_id} and c.name = 'Zoë Quill' and c.phone_number_id = ${number.phoneNumberId} order by c.id desc
  `
  const { app } = explaining(directory)
  const { listContacts: list } = asking(app, number.organizationId, number.phoneNumberId)
  const { data } = await list({ label_id, search: 'quill' })
  expect(data.map(({ id }) => id)).toEqual(inLabel.map(({ id }) => id))
  expect(await readBy(({ listContacts: ask }) => ask({ label_id, search: 'quill' }))).toMatchObject({
    items: inLabel.length,
    rows: expect.toSatisfy((rows: number) => rows < 100) as number,
  })
})

test('what changed is found without reading the others, of all statuses and of a rare one', async () => {
  const updated_since = '2020-01-01T00:00:00Z'
  const pages = { items: 25, rows: expect.toSatisfy((rows: number) => rows <= 2 * 26) }
  expect(await readBy(({ listConversations: list }) => list({ updated_since }))).toEqual(pages)
  expect(await readBy(({ listConversations: list }) => list({ updated_since, status: 'pending' }))).toEqual(page)
  const position = `${new Date(Date.now() - 30 * 24 * 3_600_000).toISOString()}|cnv_`
  const cursor = cursorAt('conversations', { updated_since }, position)
  expect(await readBy(({ listConversations: list }) => list({ updated_since, cursor }))).toEqual(pages)
  const lately = new Date(Date.now() - 60_000).toISOString()
  expect((await readBy(({ listConversations: list }) => list({ updated_since: lately }))).rows).toBeLessThan(10)
})

/** Rows that the page read, all steps together, by plans that are made for any number, label and place. */
async function keptReads(list: (asker: ReturnType<typeof asking>) => Promise<unknown>) {
  return directory.sql.begin(async (tx) => {
    await tx`set local plan_cache_mode = force_generic_plan`
    const app = { ...directory.app, sql: tx as unknown as Sql }
    const before = await rowsRead(tx, tables)
    await list(asking(app, number.organizationId, number.phoneNumberId))
    return (await rowsRead(tx, tables)) - before
  })
}

test('the plans of pages that are kept read the rows of a page', async () => {
  const contact_id = await idInTheMiddle('contacts')
  const cursor = cursorAt('contacts', {}, contact_id)
  const [label] = await directory.sql<{ id: string }[]>`
    select label_id as id from contact_labels where organization_id = ${number.organizationId} limit 1
  `
  const label_id = label?.id ?? ''
  const updated_since = '2020-01-01T00:00:00Z'
  const lists: Parameters<typeof keptReads>[0][] = [
    ({ listContacts: list }) => list(),
    ({ listContacts: list }) => list({ cursor }),
    ({ listContacts: list }) => list({ label_id }),
    ({ listContacts: list }) => list({ phone_number: '+12000020000' }),
    ({ listConversations: list }) => list(),
    ({ listConversations: list }) => list({ status: 'pending' }),
    ({ listConversations: list }) => list({ contact_id }),
    ({ listConversations: list }) => list({ contact_id, status: 'open' }),
    ({ listConversations: list }) => list({ updated_since }),
    ({ listConversations: list }) => list({ updated_since, status: 'pending' }),
  ]
  for (const [n, list] of lists.entries()) expect(await keptReads(list), `list ${n}`).toBeLessThan(300)
  expect(await keptReads(({ listContacts: list }) => list({ search: 'ana' }))).toBeLessThan(2_300)
})

test('a page of labels reads its rows alone, of all teams or of one', async () => {
  const { app, planOfLast } = explaining(directory)
  const { listLabels: list } = managing(app, { ...number, teamId: '' })
  const [other] = await directory.sql<{ teamId: string }[]>`
    select team_id from labels where organization_id = ${number.organizationId} and team_id <> ${number.state.team_id} limit 1
  `
  for (const query of [{}, { team_id: number.state.team_id }, { team_id: other?.teamId ?? '' }]) {
    expect((await list(query)).data).toHaveLength(25)
    expect(mostRows(await planOfLast())).toBe(26)
  }
})

async function idInTheMiddle(table: 'contacts' | 'conversations') {
  const [row] = await directory.sql<{ id: string }[]>`
    select id from ${directory.sql(table)} where organization_id = ${number.organizationId}
      and phone_number_id = ${number.phoneNumberId} order by id offset 20000 limit 1
  `
  if (!row) throw new Error('nothing in the middle')
  return row.id
}
