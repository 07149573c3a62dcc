import type { Handler } from '@app/shared/contract.ts'
import type { getWebhookSubscription as contract } from '@app/shared/contracts/webhooks.ts'
import { notFound } from '@app/shared/problem.ts'
import type { App } from '../app.ts'
import { subscriptionColumns, type SubscriptionRow, toSubscription } from './subscriptions.ts'

export const getWebhookSubscription: Handler<App, typeof contract> = async ({ sql }, { params }, caller) => {
  const [row] = await sql<SubscriptionRow[]>`
    select ${subscriptionColumns(sql)} from subscriptions s
    where s.organization_id = ${caller.organizationId} and s.id = ${params.id}
  `
  if (!row) throw notFound()
  return toSubscription(row)
}
