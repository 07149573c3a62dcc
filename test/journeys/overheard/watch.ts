import { expect } from 'vitest'
import { clientOf } from '../client.ts'
import type { Delivery } from '../receiver.ts'
import type { Overheard } from './overheard.ts'

/** The demo organization of a stack, with a subscription. */
export interface Watched extends Overheard {
  client: ReturnType<typeof clientOf>
  /** The key, and what signs its webhooks. */
  secrets: string[]
}

export async function watch(own: Overheard): Promise<Watched> {
  const client = clientOf(own.stack.read())
  const body = { url: own.receiver.url, events: ['message.sent', 'message.received', 'message.status'] }
  const subscription = await client.api('POST', '/webhook_subscriptions', { body })
  expect(subscription.status).toBe(201)
  return { ...own, client, secrets: [subscription.body.data.initial_secret, own.stack.read().api_key] }
}

export const sentEvents = ({ receiver }: Watched, text: string): Delivery[] =>
  receiver.of('message.sent').filter(({ raw }) => raw.includes(text))
