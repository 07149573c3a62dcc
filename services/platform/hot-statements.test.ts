import type { TransactionSql } from '@app/shared/database/database.ts'
import { rowsRead } from '@app/test/rows-read.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { statesOfOrganization } from './accounts/account-states.ts'
import { accountsWhere } from './explain/accounts.ts'
import { findLinkByToken, readLink } from './setup-links/find-link.ts'
import { startTestApp, type TestApp } from './testing/app.ts'
import { openSetup } from './testing/onboarding.ts'

let it: TestApp
let opened: Awaited<ReturnType<typeof openSetup>>

/** Of an organization that Postgres had not heard of when it looked at the tables: 3,000 customers, one with a link and 100 with a number. */
beforeAll(async () => {
  it = await startTestApp()
  await it.app.sql`alter table customers set (autovacuum_enabled = false)`
  await openSetup(it)
  await it.app.sql`analyze customers`
  opened = await openSetup(it)
  await it.app.sql`
    insert into customers (organization_id, id, team_id, name, metadata, status, created_at, updated_at)
    select organization_id, 'cus_' || n, team_id, name, '{}', status, now(), now()
    from customers, generate_series(1000, 3999) n where id = ${opened.customerId}
  `
  await it.app.sql`
    insert into accounts (organization_id, id, phone_number_id, business_account_id, team_id, customer_id, status, sealed_token)
    select organization_id, 'acc_' || n, n::text, '900900', team_id, 'cus_' || n, 'connected', 'sealed'
    from customers, generate_series(1000, 1099) n where id = ${opened.customerId}
  `
})
afterAll(() => it.close())

test.each<[string, (tx: TransactionSql) => Promise<unknown>]>([
  ['a link by its token', (tx) => findLinkByToken(tx, opened.token)],
  ['a link', (tx) => readLink(tx, { organizationId: opened.organizationId, id: opened.linkId })],
  ['the states of all numbers', (tx) => statesOfOrganization(tx, opened.organizationId)],
  ['the explanation of all numbers', (tx) => accountsWhere(tx, tx`o.id = ${opened.organizationId}`)],
])('%s: each customer is looked up by its id, however many the organization has', async (_what, read) => {
  const rows = await it.app.sql.begin(async (tx) => {
    const before = await rowsRead(tx, ['customers'])
    await read(tx)
    return (await rowsRead(tx, ['customers'])) - before
  })
  // Once for each of 100 numbers; three times for a link, whose status asks, too.
  expect(rows).toBeLessThanOrEqual(100)
})
