import type { Handler } from '@app/shared/api/contract.ts'
import { listWebhookSubscriptions as contract } from '@app/shared/contracts/webhooks.ts'
import { openPage } from '@app/shared/api/page.ts'
import type { App } from '../app.ts'
import { subscriptionColumns, type SubscriptionRow, toSubscription } from './subscriptions.ts'

export const listWebhookSubscriptions: Handler<App, typeof contract> = async (app, { query }, caller) => {
  const { sql } = app
  const page = openPage(app.cursorKeys, contract, caller, query)
  const rows = await sql<SubscriptionRow[]>`
    select ${subscriptionColumns(sql)} from subscriptions s
    where s.organization_id = ${caller.organizationId}
      ${query.status ? sql`and s.status = ${query.status}` : sql``}
      ${page.after ? sql`and s.id < ${page.after}` : sql``}
    order by s.id desc limit ${page.limit + 1}
  `
  return page.page(rows, toSubscription, ({ id }) => id)
}
