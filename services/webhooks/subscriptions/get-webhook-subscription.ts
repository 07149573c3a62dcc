import type { Handler } from '@app/shared/api/contract.ts'
import type { getWebhookSubscription as contract } from '@app/shared/contracts/webhooks.ts'
import type { App } from '../app.ts'
import { findSubscription, toSubscription } from './subscriptions.ts'

export const getWebhookSubscription: Handler<App, typeof contract> = async ({ sql }, { params }, caller) =>
  toSubscription(await findSubscription(sql, caller.organizationId, params.id))
