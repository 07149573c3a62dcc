import { hash } from 'node:crypto'
import { request } from 'undici'
import type { Json } from '../../journeys/client.ts'
import type { History, Ledger, Shelf } from '../history/history.ts'
import { randomOf } from '../random.ts'
import type { Person, Scene } from './person.ts'
import type { LoadTenant } from './tenants.ts'

const told = ['sent', 'delivered', 'read']

/** Brings into the history what the platform took, what the lists say now, and which events must have come of it. */
export async function gather(scene: Scene, people: Person[]) {
  const { history, tenants, platform } = scene
  const numbers = tenants.flatMap((tenant) => tenant.phones.map((phone) => ({ tenant, phone })))
  const upstream = await Promise.all(numbers.map(({ phone }) => platform.sent(phone)))
  history.upstream = upstream.flat()
  history.ledgers = await Promise.all(
    numbers.map(({ tenant, phone }) =>
      readLedger(
        scene,
        tenant,
        phone,
        people.filter((one) => one.phone === phone),
      ),
    ),
  )
  history.shelves = await Promise.all(
    tenants.flatMap((tenant) => [readCustomers(scene, tenant), readStuckDeliveries(scene, tenant)]),
  )
  await readFiles(history)
  expectOutcomes(scene)
}

/** Every endpoint is well again: what was never tried, or was given up, is not there. */
async function readStuckDeliveries({ seed }: Scene, { word, client }: LoadTenant): Promise<Shelf> {
  const lists = await Promise.all(
    ['pending', 'dead'].map((status) =>
      client.everything(randomOf(seed, `${status} ${word}`), `/webhook_deliveries?status=${status}`),
    ),
  )
  const listed = lists.flat().map(({ id, status, event_type: type }: Json) => `${id} (${type}, ${status})`)
  return { name: `${word} lists`, made: [], listed }
}

/** Whose file is not served yet has no URL, and is looked at the next time. */
async function readFiles({ files, ledgers }: History) {
  const urls = new Map(ledgers.flatMap(({ media }) => [...media]))
  for (const file of files) {
    const url = urls.get(file.messageId)
    if (file.served !== null || !url) continue
    file.served = await hashOf(url).catch(() => null)
  }
}

async function readCustomers({ history, seed }: Scene, { id, word, client }: LoadTenant): Promise<Shelf> {
  const textOf = (customer: Json) => `${customer.id} ${customer.name} ${customer.status}`
  const listed = await client.everything(randomOf(seed, `customers ${word}`), '/customers?')
  const made = history.customers.filter(({ tenant }) => tenant === id)
  return { name: `${word} lists`, made: made.map(textOf), listed: listed.map(textOf) }
}

async function hashOf(url: string) {
  const { statusCode, body } = await request(url)
  const bytes = Buffer.from(await body.arrayBuffer())
  return statusCode === 200 ? hash('sha256', bytes) : null
}

async function readLedger(
  { history, seed }: Scene,
  { client }: LoadTenant,
  phone: string,
  people: Person[],
): Promise<Ledger> {
  const random = randomOf(seed, `ledger ${phone}`)
  const startedAt = Date.now()
  const [outbound, inbound] = await Promise.all(
    ['outbound', 'inbound'].map((way) => client.everything(random, `/${phone}/messages?direction=${way}`)),
  )
  const endedAt = Date.now()
  for (const { id: messageId, status, error } of outbound ?? []) {
    history.endings.set(messageId, { messageId, startedAt, endedAt, status, code: error?.code ?? null })
  }
  const conversations = await client.everything(random, `/${phone}/conversations?`)
  const shownTo = (person: Person) =>
    conversations
      .filter(({ id, contact }: Json) => id === person.conversationId || contact.phone_number === person.number)
      .map(({ unread_count: unread }: Json) => unread as number)
  return {
    phone,
    outbound: (outbound ?? []).map(({ id, status }: Json) => ({ id, status })),
    inboundPosted: people.flatMap(({ written }) => written),
    inboundListed: (inbound ?? []).map(({ message_id: id }: Json) => id),
    media: (inbound ?? []).flatMap(({ message_id: id, media_url: url }: Json) => (url ? [[id, url]] : [])),
    unread: people.map((person) => {
      const [shown = -1, ...more] = shownTo(person)
      // A second conversation of one person is none that ought to be.
      return { person: person.number, shown: more.length > 0 ? -1 : shown, written: person.unread.length }
    }),
  }
}

/** What must be told of each send, by what became of it. */
function expectOutcomes({ history }: Scene) {
  history.expected = history.expected.filter(
    ({ eventId, type }) => type === 'message.received' || eventId === undefined,
  )
  const accepted = new Map(history.accepted.map((send) => [send.id, send]))
  for (const { id: wamid, messageId, phone } of history.upstream) {
    const send = accepted.get(messageId)
    if (!send) continue
    const event = { tenant: send.tenant, phone, notBefore: send.startedAt }
    history.expected.push({ ...event, type: 'message.sent', eventId: `${messageId}:sent` })
    for (const status of told)
      history.expected.push({ ...event, type: 'message.status', eventId: `${wamid}:${status}` })
  }
  const went = new Set(history.upstream.map(({ messageId }) => messageId))
  for (const { id, tenant, phone, startedAt } of history.accepted) {
    if (went.has(id)) continue
    history.expected.push({ tenant, phone, type: 'message.status', eventId: `${id}:failed`, notBefore: startedAt })
  }
}
