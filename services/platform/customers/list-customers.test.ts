import { systemCaller } from '@app/shared/bus/ask.ts'
import type { Sql } from '@app/shared/database/database.ts'
import { newId } from '@app/shared/values/ids.ts'
import { rowsRead } from '@app/test/rows-read.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ask, newOrganization, startTestApp, type TestApp } from '../testing/app.ts'
import { listCustomers } from './list-customers.ts'

let it: TestApp
let organizationId: string
const [crowded, small] = [newId('team'), newId('team')]

/** 20,000 customers. The older half is archived, the newer active; of 1,000 two are suspended, one of them in the small team. */
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
        case n % 1000 when 1 then ${small} else ${crowded} end, 'Bakery', '{}',
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
  const read = await it.app.sql.begin(async (tx) => {
    const app = { ...it.app, sql: tx as unknown as Sql }
    const page = (query: object) =>
      ask(app, listCustomers, undefined, {
        query: { limit: '10', ...filter, ...query },
        caller: systemCaller(organizationId),
      })
    const before = await rowsRead(app.sql, ['customers'])
    const { next_cursor: cursor } = await page({})
    if (cursor !== null) await page({ cursor })
    return (await rowsRead(app.sql, ['customers'])) - before
  })
  expect(read).toBeLessThan(50)
})
