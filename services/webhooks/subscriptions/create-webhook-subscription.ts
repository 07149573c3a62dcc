import type { Answer, Handler } from '@app/shared/api/contract.ts'
import { createWebhookSubscription as contract } from '@app/shared/contracts/webhooks.ts'
import type { TransactionSql } from '@app/shared/database/database.ts'
import { once, storedAnswer } from '@app/shared/idempotency/idempotency.ts'
import { newId, timeOf } from '@app/shared/values/ids.ts'
import { Problem } from '@app/shared/api/problem.ts'
import type { App } from '../app.ts'
import { ownNumbers } from './own-numbers.ts'
import { createSecret } from './secrets.ts'

/**
 * An event that all of them select takes some 0.4 s. It is recorded for all or for none, in one statement: one for 100,000
 * would not end in its time, and whoever's events come behind it would wait for ever.
 */
const mostSubscriptions = 10_000

export const createWebhookSubscription: Handler<App, typeof contract> = async (app, { body }, caller) => {
  // A repeated request is answered as before, whatever became of its numbers and its host.
  const stored = await storedAnswer(app.sql, app.sealKeys, caller)
  if (stored) return stored
  const { events, description = null, phone_number_ids: numbers = null } = body
  const [phoneNumberIds, url] = await Promise.all([ownNumbers(app, numbers, caller), app.egress.checkUrl(body.url)])
  return once(
    app,
    contract,
    caller,
    async (tx): Promise<Answer<typeof contract>> => {
      await refuseTooMany(tx, caller.organizationId)
      const id = newId('wbs')
      const createdAt = timeOf(id)
      await tx`
        insert into subscriptions (id, organization_id, url, description, events, phone_number_ids, created_at, updated_at)
        values (${id}, ${caller.organizationId}, ${url}, ${description}, ${events}, ${phoneNumberIds}, ${createdAt},
          ${createdAt})
      `
      const secret = await createSecret(tx, app.sealKeys, id)
      const at = createdAt.toISOString()
      return {
        id,
        object: 'webhook_subscription',
        url,
        description,
        events,
        phone_number_ids: phoneNumberIds,
        status: 'active',
        disabled_reason: null,
        consecutive_failures: 0,
        secrets: [{ id: secret.id, created_at: secret.createdAt.toISOString(), expires_at: null }],
        created_at: at,
        updated_at: at,
        initial_secret: secret.text,
      }
    },
    { secret: true },
  )
}

async function refuseTooMany(tx: TransactionSql, organizationId: string) {
  const full = await tx`
    select from subscriptions where organization_id = ${organizationId} offset ${mostSubscriptions - 1} limit 1
  `
  if (full.length > 0) throw new Problem('too_many_webhook_subscriptions')
}
