import { systemCaller } from '@app/shared/bus/ask.ts'
import type { Answer, Input } from '@app/shared/api/contract.ts'
import type { listCustomers as contract } from '@app/shared/contracts/customers.ts'
import type { Sql, TransactionSql } from '@app/shared/database/database.ts'
import { newId } from '@app/shared/values/ids.ts'
import { rowsRead } from '@app/test/rows-read.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ask, newOrganization, startTestApp, type TestApp } from '../testing/app.ts'
import { listCustomers } from './list-customers.ts'

let it: TestApp
let organizationId: string
const [crowded, small] = [newId('team'), newId('team')]

/** 20,000 customers. The older half is archived, the newer active; of 1,000 two are suspended, one of them in the small team. One of the oldest is a windmill. */
beforeAll(async () => {
  it = await startTestApp()
  organizationId = await newOrganization(it.app)
  const prefix = newId('cus').slice(0, 14)
  await it.app.sql.begin(async (tx) => {
    for (const team of [crowded, small])
      await tx`insert into teams (organization_id, id, name) values (${organizationId}, ${team}, ${team})`
    await tx`
      insert into customers (organization_id, id, team_id, name, metadata, status, archived_at, created_at, updated_at)
      select ${organizationId}, ${prefix}::text || lpad(n::text, 16, '0'),
        case n % 1000 when 1 then ${small} else ${crowded} end, case n when 7 then 'Windmill' else 'Bakery' end, '{}',
        k.status, case k.status when 'archived' then now() end, now(), now()
      from generate_series(1, 20000) n
      cross join lateral (
        select case when n % 1000 < 2 then 'suspended' when n > 10000 then 'active' else 'archived' end as status
      ) k
    `
  })
  await it.app.sql`analyze customers`
}, 60_000)
afterAll(() => it.close())

test.each([
  ['all', {}],
  ['a common status', { status: 'active' }],
  ['a common status of the oldest', { status: 'archived' }],
  ['a rare status', { status: 'suspended' }],
  ['a large team', { team_id: crowded }],
  ['a small team', { team_id: small }],
  ['a rare status in a large team', { status: 'suspended', team_id: crowded }],
  ['a status that a team has not', { status: 'active', team_id: small }],
] as const)('a page of customers reads the rows of a page, however many there are: %s', async (_, filter) => {
  const read = await rowsReadBy(async (page) => {
    const { next_cursor: cursor } = await page({ limit: '10', ...filter })
    if (cursor !== null) await page({ limit: '10', ...filter, cursor })
  })
  expect(read).toBeLessThan(50)
})

test.each([{}, { status: 'archived' }, { team_id: crowded }] as const)(
  'a search for a rare text reads the newest, and then those that have it: %j',
  async (filter) => {
    const read = await rowsReadBy(async (page) => {
      const { data } = await page({ search: 'WINDM', ...filter })
      expect(data.map(({ name }) => name)).toEqual(['Windmill'])
    })
    expect(read).toBeLessThan(2_050)
  },
)

test('one and two characters are found among the oldest, too, in the middle of a word', async () => {
  const { data } = await ask(it.app, listCustomers, undefined, {
    query: { search: 'DM' },
    caller: systemCaller(organizationId),
  })
  expect(data.map(({ name }) => name)).toEqual(['Windmill'])
})

type Query = Input<typeof contract>['query']

/** How many rows of customers are read by what asks for pages of them. */
const rowsReadBy = (work: (page: (query: Query) => Promise<Answer<typeof contract>>) => Promise<void>) =>
  it.app.sql.begin(async (tx) => {
    const sql = Object.assign(tx, { begin: (inside: (tx: TransactionSql) => unknown) => tx.savepoint(inside) })
    const app = { ...it.app, sql: sql as unknown as Sql }
    const before = await rowsRead(tx, ['customers'])
    await work((query) => ask(app, listCustomers, undefined, { query, caller: systemCaller(organizationId) }))
    return (await rowsRead(tx, ['customers'])) - before
  })
