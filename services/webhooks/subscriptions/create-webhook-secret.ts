import type { Answer, Handler } from '@app/shared/api/contract.ts'
import { createWebhookSecret as contract } from '@app/shared/contracts/webhooks.ts'
import { once } from '@app/shared/idempotency/idempotency.ts'
import { Problem } from '@app/shared/api/problem.ts'
import type { App } from '../app.ts'
import { createSecret } from './secrets.ts'
import { lockSubscription, refuseDisabled } from './subscriptions.ts'

/** Each costs a signature for every delivery. */
const mostSecrets = 5

const hourMs = 60 * 60 * 1000

export const createWebhookSecret: Handler<App, typeof contract> = (app, { params, body }, caller) =>
  once(
    app,
    contract,
    caller,
    async (tx): Promise<Answer<typeof contract>> => {
      const subscription = await lockSubscription(tx, caller.organizationId, params.id)
      refuseDisabled(subscription)
      if (subscription.secrets.length >= mostSecrets) throw new Problem('too_many_secrets')
      const { expires_in_hours: hours } = body
      const expiresAt = hours === undefined ? null : new Date(Date.now() + hours * hourMs)
      const { id, text, createdAt } = await createSecret(tx, app.sealKeys, params.id, expiresAt)
      return {
        id,
        object: 'webhook_signing_secret',
        secret: text,
        created_at: createdAt.toISOString(),
        expires_at: expiresAt?.toISOString() ?? null,
      }
    },
    { secret: true },
  )
