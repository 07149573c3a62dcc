import { createServer } from 'node:http'
import { expect } from 'vitest'
import { client, type Json, newPhone, until } from '../journeys/client.ts'
import { type Receiver, startReceiver } from '../journeys/receiver.ts'
import { newTenant, type Tenant } from '../journeys/tenant.ts'
import { listen } from '../listen.ts'
import { type Operation, prefixOf } from './document.ts'

/** An organization that has two of everything, and more of what is deleted on the way. */
export interface World {
  tenant: Tenant
  receiver: Receiver
  /** Where a file can be fetched. */
  fileUrl: string
  close: () => void
  phone: string
  /** Of the same organization. */
  otherPhone: string
  /** Customers' numbers, one each. */
  spare: { id: string; phone_number_id: string }[]
  links: { id: string; link_id: string }[]
  secrets: { id: string; secret_id: string }[]
  /** Ids by prefix; the first half stays as it is. */
  ids: Record<string, string[]>
  /** The platform's ids of messages that came in. */
  inbound: string[]
  /** People whose window is open. */
  people: string[]
  templates: string[]
}

const each = <T>(count: number, make: (n: number) => Promise<T>) =>
  Promise.all(Array.from({ length: count }, (_, n) => make(n)))
const idsOf = (made: Json[]): string[] => made.map(({ id }) => id)

/**
 * Fills an organization of its own. The counts do not depend on chance, so that a seed means the same again. `of`: how many of what is
 * changed and deleted on the way; four of one whose things are only asked for.
 */
export async function makeWorld(of = 8): Promise<World> {
  const receiver = await startReceiver()
  const file = await startFile()
  const tenant = await newTenant('--tier', 'unlimited')
  const [phone, otherPhone] = [await tenant.connect(), await tenant.connect()]
  const half = of / 2
  const ok: Tenant['ok'] = (method, path, body) => tenant.ok(method, path, body)
  const customers = await each(of, (n) => ok('POST', '/customers', { name: `Customer ${n}` }))
  const spare: World['spare'] = []
  for (const { id } of customers.slice(0, 2))
    spare.push({ id, phone_number_id: await tenant.connect('--customer', id) })
  const links = await each(of, async (n) => {
    const { id } = customers[n % half]
    return { id, link_id: (await ok('POST', `/customers/${id}/setup_links`, {})).id as string }
  })
  const labels = await each(of, (n) => ok('POST', '/labels', { name: `Label ${n} ${newPhone()}` }))
  const contacts = await each(of, () => ok('POST', `/${phone}/contacts`, { phone_number: newPhone() }))
  const people = Array.from({ length: 4 }, newPhone)
  await each(4, (n) => tenant.openWindow(phone, people[n] ?? ''))
  const media = await each(2, () => upload(tenant.key, phone))
  const recipient = { messaging_product: 'chat', to: people[0], type: 'document', document: { id: media[0] } }
  await ok('POST', `/${phone}/messages`, recipient)
  const conversations = await ok('GET', `/${phone}/conversations`)
  const messages: Json[] = await ok('GET', `/${phone}/messages`)
  const events = ['message.sent', 'contact.created']
  const subscriptions = await each(of, () => ok('POST', '/webhook_subscriptions', { url: receiver.url, events }))
  const secrets = await each(of, async (n) => {
    const { id } = subscriptions[n % half]
    return { id, secret_id: (await ok('POST', `/webhook_subscriptions/${id}/secrets`, {})).id as string }
  })
  const deliveries = await each(4, (n) => ok('POST', `/webhook_subscriptions/${subscriptions[n].id}/test`))
  const since = '2026-01-01T00:00:00Z'
  const replays = await each(2, (n) =>
    ok('POST', '/webhook_deliveries/replays', { subscription_id: subscriptions[n].id, since }),
  )
  const templates = await each(2, async (n) => {
    const name = `fuzz_${n}_${phone}`
    const components = [{ type: 'BODY', text: 'Your order has shipped.' }]
    await ok('POST', `/${phone}/templates`, { name, language: 'en_US', category: 'UTILITY', components })
    return name
  })
  const me = await ok('GET', '/me')
  await until(() => expect(receiver.deliveries.length).toBeGreaterThanOrEqual(4))
  return {
    tenant, receiver, fileUrl: file.url, phone, otherPhone, spare, links, secrets, people, templates,
    close() {
      receiver.close()
      file.close()
    },
    inbound: messages.flatMap(({ direction, message_id }) => (direction === 'inbound' ? [message_id] : [])),
    ids: {
      cus: idsOf(customers).slice(2),
      lbl: idsOf(labels),
      ctc: idsOf(contacts),
      cnv: idsOf(conversations),
      msg: idsOf(messages),
      wbs: idsOf(subscriptions),
      wbd: idsOf(deliveries),
      rpl: idsOf(replays),
      med: media,
      team: idsOf(me.teams),
    },
  } // prettier-ignore
}

async function startFile() {
  const server = createServer((_request, response) =>
    response.writeHead(200, { 'content-type': 'text/plain' }).end('some words'),
  )
  const port = await listen(server)
  return { url: `http://127.0.0.1:${port}/words.txt`, close: () => server.close().closeAllConnections() }
}

async function upload(key: string, phone: string): Promise<string> {
  const form = new FormData()
  form.set('file', new Blob(['some words'], { type: 'text/plain' }), 'words.txt')
  const { status, body } = await client().api('POST', `/${phone}/media`, { key, form })
  expect(status, JSON.stringify(body)).toBe(201)
  return body.data.id
}

/** Every way to fill an operation's path with what is there. */
export function pathsOf(world: World, operation: Operation): Record<string, string>[] {
  const names = operation.pathParameters.map(({ name }) => name)
  if (names.includes('link_id')) return doomed(operation, world.links)
  if (names.includes('secret_id')) return world.secrets
  if (operation.path.startsWith('/customers/') && names.includes('phone_number_id')) return world.spare
  const choices = operation.pathParameters.map(({ name, schema }) => {
    if (name === 'phone_number_id') return [world.phone]
    if (name === 'name') return world.templates
    return doomed(operation, world.ids[prefixOf(schema) ?? ''] ?? [])
  })
  const count = Math.max(1, ...choices.map(({ length }) => length))
  return Array.from({ length: count }, (_, n) =>
    Object.fromEntries(names.map((name, m) => [name, choices[m]?.[n % (choices[m]?.length ?? 1)] ?? ''])),
  )
}

/** What is deleted stands in the second half, what is changed in the third quarter, everything else works on the first half. */
function doomed<T>({ method, path }: Operation, all: T[]): T[] {
  if (all.length < 6 || path.endsWith('/{label_id}')) return all
  const half = all.length / 2
  if (method === 'GET' || method === 'POST') return all.slice(0, half)
  return method === 'PATCH' ? all.slice(half, half + 2) : all.slice(half + 2)
}
