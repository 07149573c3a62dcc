import { hash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Json } from '../../journeys/client.ts'
import { pngHead } from '../../png.ts'
import type { ExpectedEvent, History } from '../history/history.ts'
import { between, oneOf, type Random, randomOf } from '../random.ts'
import type { Platform } from './platform.ts'
import type { LoadTenant } from './tenants.ts'

export interface Scene {
  seed: number
  history: History
  platform: Platform
  tenants: LoadTenant[]
  /** Whether the load ends. */
  isOver: () => boolean
}

export interface Person {
  scene: Scene
  tenant: LoadTenant
  phone: string
  number: string
  /** Unique, for words in texts: a word, then a dot, so that none holds another. */
  name: string
  random: Random
  startedAt: number
  turn: number
  /** The platform's ids of what the person wrote. */
  written: string[]
  /** Those since the last receipt. */
  unread: string[]
  sent: string[]
  contactId: string
  conversationId: string
}

/** A customer of a number, with the business that answers: each does one thing after the other, at random. */
export async function playPerson(scene: Scene, tenant: LoadTenant, phone: string, n: number): Promise<Person> {
  const person = await meetPerson(scene, tenant, phone, n)
  while (!scene.isOver()) {
    const act = oneOf(person.random, deck)
    await act(person).catch((err: Error) => scene.history.complaints.push(`${person.name}: ${err.message}`))
    await sleep(between(person.random, 200, 1_400))
  }
  return person
}

/** Somebody new, who has written to the number, so that it may answer. */
export async function meetPerson(scene: Scene, tenant: LoadTenant, phone: string, n: number): Promise<Person> {
  const place = tenant.phones.indexOf(phone)
  const random = randomOf(scene.seed, `person ${tenant.word} ${place} ${n}`)
  const person: Person = {
    scene,
    tenant,
    phone,
    number: numberOf(random),
    name: `${tenant.word}-${place}-${n}`,
    random,
    startedAt: Date.now(),
    turn: 0,
    written: [],
    unread: [],
    sent: [],
    contactId: '',
    conversationId: '',
  }
  await appear(person)
  return person
}

/** The person's message makes a contact and a conversation. */
async function appear(person: Person) {
  count(person, 'contact.created', `"phone_number":"${person.number}"`)
  await write(person)
  await findConversation(person)
  count(person, 'conversation.closed', `"id":"${person.conversationId}"`, 0)
}

/** Deletes the contact when nothing of it is on its way; then the person writes again, and is a new one. */
async function forget(person: Person) {
  const { tenant, phone, contactId, random, unread } = person
  if (unread.length > 0 && (await newestUnread(person)) === undefined) return
  const { status } = await tenant.client.surely(random, 'DELETE', `/${phone}/contacts/${contactId}`)
  // The second try finds what the first one did.
  if (status !== 200 && status !== 404) throw new Error(`${contactId} was not deleted: ${status}`)
  person.unread = []
  await appear(person)
}

/** Makes a contact of somebody who has not written, with a key, and one time in two again. */
async function introduce(person: Person) {
  const { tenant, phone, random } = person
  const name = wordOf(person)
  const body = { phone_number: numberOf(random), name }
  count(person, 'contact.created', `"name":"${name}"`)
  for (let times = random() < 0.5 ? 1 : 2; times > 0; times--) {
    await tenant.client.data(random, 'POST', `/${phone}/contacts`, { body, key: name })
  }
}

const numberOf = (random: Random) => `+1555${String(2_000_000 + Math.floor(random() * 7_999_999))}`

/** What happened once more than until now. */
function count({ scene, tenant, phone }: Person, type: string, word: string, times = 1) {
  const { tallies } = scene.history
  const tally = tallies.find((one) => one.type === type && one.word === word)
  if (tally) tally.times += times
  else tallies.push({ tenant: tenant.id, phone, type, word, times })
}

const wordOf = (person: Person) => `${person.name}-${(person.turn += 1)}.`

function expectEvent({ tenant, phone, scene }: Person, event: Omit<ExpectedEvent, 'tenant' | 'phone'>) {
  scene.history.expected.push({ tenant: tenant.id, phone, ...event })
}

export async function write(person: Person) {
  const { scene, phone, number } = person
  const notBefore = Date.now()
  const eventId = await scene.platform.write(phone, number, wordOf(person))
  person.written.push(eventId)
  person.unread.push(eventId)
  expectEvent(person, { type: 'message.received', eventId, notBefore })
}

/** Somebody sends a picture; what is served of it has the same bytes. */
async function sendFile(person: Person) {
  const { scene, phone, number } = person
  const notBefore = Date.now()
  const bytes = Buffer.concat([pngHead, Buffer.from(wordOf(person).repeat(500))])
  const eventId = await scene.platform.writeFile(phone, number, bytes)
  person.written.push(eventId)
  person.unread.push(eventId)
  expectEvent(person, { type: 'message.received', eventId, notBefore })
  scene.history.files.push({ messageId: eventId, posted: hash('sha256', bytes), served: null })
}

/** Waits until the person's first message has gone all the way. */
async function findConversation(person: Person) {
  const { tenant, phone, number, random } = person
  for (;;) {
    const [contact] = await tenant.client.data(
      random,
      'GET',
      `/${phone}/contacts?phone_number=${encodeURIComponent(number)}`,
    )
    const found =
      contact && (await tenant.client.data(random, 'GET', `/${phone}/conversations?contact_id=${contact.id}`))
    // Both are there before what was written is, when that had to be tried again.
    if (found?.[0]?.last_inbound_at) {
      person.contactId = contact.id
      person.conversationId = found[0].id
      return
    }
    await sleep(250)
  }
}

/** The platform takes 45 messages at once to one person, then one in 6 s: more would wait longer than we look. */
const mayWaitFor = ({ startedAt, sent }: Person) => sent.length < 40 + (Date.now() - startedAt) / 7_000

/** Sends a text with a key, as often as it takes; answers its id. */
export async function send(person: Person): Promise<string> {
  const { scene, tenant, phone, number, random } = person
  const word = wordOf(person)
  const body = { messaging_product: 'chat', to: number, type: 'text', text: { body: word } }
  const ask = { body, key: word }
  const answer = await tenant.client.surely(random, 'POST', `/${phone}/messages`, ask)
  if (answer.status !== 200) throw new Error(`${word} was refused: ${JSON.stringify(answer.body)}`)
  const { id, conversation_id: conversation } = answer.body.data
  const { startedAt, answeredAt: acceptedAt } = answer
  scene.history.accepted.push({ id, tenant: tenant.id, phone, conversation, startedAt, acceptedAt })
  person.sent.push(id)
  // One in five is not sure of it.
  if (random() < 0.2) await tenant.client.surely(random, 'POST', `/${phone}/messages`, ask)
  return id
}

const sendSome = async (person: Person) => mayWaitFor(person) && send(person)

const sendThree = (person: Person) => Promise.all([sendSome(person), sendSome(person), sendSome(person)])

async function rename(person: Person) {
  const { tenant, phone, contactId, random } = person
  const name = wordOf(person)
  expectEvent(person, { type: 'contact.updated', word: `"name":"${name}"`, notBefore: Date.now() })
  await tenant.client.data(random, 'PATCH', `/${phone}/contacts/${contactId}`, { body: { name } })
}

async function assign(person: Person) {
  const { tenant, phone, conversationId, random } = person
  const user = wordOf(person)
  expectEvent(person, { type: 'conversation.assigned', word: `"user_id":"${user}"`, notBefore: Date.now() })
  await tenant.client.data(random, 'PATCH', `/${phone}/conversations/${conversationId}`, {
    body: { assigned_to: user },
  })
}

/** How long somebody waits for what was written to be listed, before something else is done. */
const arrivalMs = 15_000

/** Waits until all that is unread is listed; answers the newest of it. Undefined: that takes its time. */
async function newestUnread({ tenant, phone, conversationId, random, unread }: Person): Promise<string | undefined> {
  const path = `/${phone}/messages?direction=inbound&conversation_id=${conversationId}&limit=100`
  const startedAt = Date.now()
  while (unread.length > 0 && Date.now() - startedAt < arrivalMs) {
    const listed: Json[] = await tenant.client.data(random, 'GET', path)
    const ids = listed.map(({ message_id: id }: Json) => id as string)
    if (unread.every((id) => ids.includes(id))) return ids.find((id) => unread.includes(id))
    await sleep(250)
  }
  return undefined
}

/** Reads all, now and then twice. */
async function read(person: Person) {
  const { tenant, phone, random } = person
  const messageId = await newestUnread(person)
  if (messageId === undefined) return
  const ask = { body: { messaging_product: 'chat', status: 'read', message_id: messageId }, key: wordOf(person) }
  await tenant.client.data(random, 'POST', `/${phone}/messages`, ask)
  person.unread = []
  if (random() < 0.3) await tenant.client.data(random, 'POST', `/${phone}/messages`, { body: ask.body })
}

/** Closes the conversation once nothing is on its way that would open it, and opens it again. */
async function close(person: Person) {
  const { tenant, phone, conversationId, random, unread } = person
  if (unread.length > 0 && (await newestUnread(person)) === undefined) return
  const path = `/${phone}/conversations/${conversationId}`
  await tenant.client.data(random, 'PATCH', path, { body: { status: 'resolved' } })
  count(person, 'conversation.closed', `"id":"${conversationId}"`)
  await tenant.client.data(random, 'PATCH', path, { body: { status: 'open' } })
}

async function look(person: Person) {
  const { scene, tenant, phone, random, sent } = person
  if (sent.length === 0) return
  const messageId = oneOf(random, sent.slice(-5))
  const {
    status,
    body,
    startedAt,
    answeredAt: endedAt,
  } = await tenant.client.surely(random, 'GET', `/${phone}/messages/${messageId}`)
  if (status !== 200) throw new Error(`${messageId} cannot be read: ${JSON.stringify(body)}`)
  scene.history.readings.push({
    messageId,
    startedAt,
    endedAt,
    status: body.data.status,
    code: body.data.error?.code ?? null,
  })
}

/** Tries what is another's: the message, the number, or both. */
async function pry({ scene, tenant, phone, random }: Person) {
  const stranger = oneOf(
    random,
    scene.tenants.filter((one) => one !== tenant),
  )
  const theirs = scene.history.accepted.findLast((send) => send.tenant === stranger.id)
  if (!theirs) return
  const path = random() < 0.5 ? `/${phone}/messages/${theirs.id}` : `/${theirs.phone}/messages/${theirs.id}`
  const { status } = await tenant.client.surely(random, 'GET', path)
  if (status !== 404) throw new Error(`${path} answered ${status} to a stranger`)
}

const shares: Array<[number, (person: Person) => Promise<unknown>]> = [
  [7, sendSome],
  [1, sendThree],
  [3, write],
  [2, rename],
  [2, assign],
  [2, read],
  [1, close],
  [1, sendFile],
  [1, forget],
  [1, introduce],
  [3, look],
  [1, pry],
]
const deck = shares.flatMap(([share, act]) => Array.from({ length: share }, () => act))
