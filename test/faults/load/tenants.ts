import { call, systemCaller } from '@app/shared/bus/ask.ts'
import { connectAccount, createKey, createOrganization } from '@app/shared/contracts/platform.ts'
import { type Bus, withBus } from '@app/deploy/stack/bus.ts'
import { readBusPlace } from '@app/deploy/stack/stack-file.ts'
import type { Stack, StartedStack } from '../../journeys/start-stack.ts'
import type { History } from '../history/history.ts'
import { randomOf } from '../random.ts'
import { type Client, createClient } from './client.ts'
import type { Platform } from './platform.ts'
import type { Subscriber } from './subscriber.ts'

export interface LoadTenant {
  id: string
  /** Stands in every text that is its own. */
  word: string
  phones: string[]
  client: Client
  /** The id of the subscription that is paused and moved, and gets all the same. */
  restless: string
}

const words = ['amber', 'birch', 'coral', 'dune', 'ember', 'fjord', 'grove', 'heath']
const told = [
  'message.received',
  'message.status',
  'message.sent',
  'contact.created',
  'contact.updated',
  'conversation.assigned',
  'conversation.closed',
  'customer.created',
  'customer.updated',
  'customer.archived',
  'customer.setup_link.created',
]

interface Ground {
  stack: StartedStack
  history: History
  platform: Platform
  subscriber: Subscriber
}

const gatewaysOf = ({ services }: Stack) => (services['gateway'] ?? []).map(({ public_url: url }) => `${url}/v1`)

/** Organizations with a key, numbers and subscriptions: three to everything, one to the sends of the first number. */
export function makeTenants(ground: Ground, count: number, numbers: number): Promise<LoadTenant[]> {
  return withBus(readBusPlace(ground.stack.dataDir) ?? { natsUrl: '' }, async (bus) => {
    const tenants: LoadTenant[] = []
    for (const word of words.slice(0, count)) tenants.push(await makeTenant(bus, ground, word, numbers))
    return tenants
  })
}

async function makeTenant(bus: Bus, { stack, history, platform, subscriber }: Ground, word: string, numbers: number) {
  const { id } = await call(bus, createOrganization, { body: { name: word, tier: 'unlimited' } }, systemCaller())
  const { key } = await call(bus, createKey, { body: { organization_id: id, label: word } }, systemCaller())
  const phones: string[] = []
  for (let n = 0; n < numbers; n++) {
    const { phone_number_id, business_account_id, access_token } = await platform.newNumber()
    const body = { organization_id: id, phone_number_id, business_account_id, access_token }
    await call(bus, connectAccount, { body }, systemCaller(), { timeoutMs: 20_000 })
    phones.push(phone_number_id)
  }
  history.tenants.push({ id, own: [id, key, word, ...phones] })
  const client = createClient(history, gatewaysOf(stack.read()), id, key)
  const tenant = { id, word, phones, client, restless: '' }
  await subscribe({ history, subscriber }, tenant, 'all', { activeFrom: 0 })
  await subscribe({ history, subscriber }, tenant, 'twin', { activeFrom: 0 })
  tenant.restless = await subscribe({ history, subscriber }, tenant, 'restless', { activeFrom: 0 })
  const only = { events: ['message.sent', 'message.status'], phones: phones.slice(0, 1), activeFrom: 0 }
  await subscribe({ history, subscriber }, tenant, 'first', only)
  return tenant
}

interface Wish {
  events?: string[]
  phones?: string[]
  /** 0: before anything happened. */
  activeFrom?: number
}

/** Its name is `word-name`, which its URL ends with. Answers its id. */
export async function subscribe(
  { history, subscriber }: Pick<Ground, 'history' | 'subscriber'>,
  { id: tenant, word, client }: LoadTenant,
  name: string,
  { events = told, phones, activeFrom }: Wish,
): Promise<string> {
  const id = `${word}-${name}`
  const body = { url: subscriber.urlOf(id), events, ...(phones && { phone_number_ids: phones }) }
  const made = await client.data(randomOf(0, id), 'POST', '/webhook_subscriptions', { body, key: id })
  history.subscriptions.push({ id, tenant, events, phones: phones ?? null, activeFrom: activeFrom ?? Date.now() })
  return made.id
}
