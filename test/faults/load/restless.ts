import { setTimeout as sleep } from 'node:timers/promises'
import { between, randomOf } from '../random.ts'
import type { Scene } from './person.ts'
import type { Subscriber } from './subscriber.ts'
import type { LoadTenant } from './tenants.ts'

/** Pauses a subscription, lets it go on, gives it another URL, again and again; in the end it is active. */
export async function playRestless({ seed, history, isOver }: Scene, tenant: LoadTenant, { urlOf }: Subscriber) {
  const name = `${tenant.word}-restless`
  const random = randomOf(seed, name)
  const change = (body: object) =>
    tenant.client
      .data(random, 'PATCH', `/webhook_subscriptions/${tenant.restless}`, { body })
      .catch((err: Error) => history.complaints.push(`${name}: ${err.message}`))
  for (let n = 1; !isOver(); n++) {
    await sleep(between(random, 500, 4_000))
    // Its last part stays, by which the subscriber knows it.
    if (random() < 0.4) await change({ url: urlOf(`${n}/${name}`) })
    await change({ status: 'paused' })
    await sleep(between(random, 200, 5_000))
    await change({ status: 'active', ...(random() < 0.3 && { url: urlOf(`${n}-again/${name}`) }) })
  }
}
