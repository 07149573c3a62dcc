import { setTimeout as sleep } from 'node:timers/promises'
import type { Handler } from '@app/shared/api/contract.ts'
import type { deleteWebhookSecret as contract } from '@app/shared/contracts/webhooks.ts'
import { notFound, Problem } from '@app/shared/api/problem.ts'
import type { App } from '../app.ts'
import { lastByOldMs } from '../attempts/as-read.ts'
import { lockSubscription, refuseDisabled } from './subscriptions.ts'

/** Once it is answered nothing is signed with it: what was begun before the commit has gone out by then, or goes out never. */
export const deleteWebhookSecret: Handler<App, typeof contract> = async ({ sql }, { params }, caller) => {
  const { id, secret_id: secretId } = params
  await sql.begin(async (tx) => {
    const subscription = await lockSubscription(tx, caller.organizationId, id)
    const { secrets } = subscription
    if (!secrets.some((secret) => secret.id === secretId)) throw notFound()
    refuseDisabled(subscription)
    if (!secrets.some((secret) => secret.id !== secretId && secret.expires === null)) throw new Problem('last_secret')
    await tx`delete from secrets where subscription_id = ${id} and id = ${secretId}`
  })
  await sleep(lastByOldMs)
  return { id: secretId, object: 'webhook_signing_secret', deleted: true }
}
