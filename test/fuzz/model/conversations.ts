import fc from 'fast-check'
import { expect } from 'vitest'
import { type Json, until } from '../../journeys/client.ts'
import { personOf, setContact } from './contacts.ts'
import {
  command,
  type Command,
  contactFacts,
  expectAnswer,
  inOrder,
  type Model,
  type Real,
  shownOf,
  told,
} from './model.ts'

const person = fc.nat({ max: 3 })
const status = fc.constantFrom('open', 'resolved', 'pending')
const assignee = fc.option(fc.constantFrom('ana', 'bo', '𝒳'.repeat(64)))

const talks = (n: number) => (model: Readonly<Model>) => model.people[n]?.conversation !== null

export const conversationCommands: fc.Arbitrary<Command>[] = [
  person.map((n) => command(`${n} writes in`, (model, real) => writeIn(model, real, n))),
  fc.tuple(person, fc.record({ status, assigned_to: assignee }, { requiredKeys: [] })).map(([n, changes]) =>
    command(`patch conversation ${n} ${JSON.stringify(changes)}`, (model, real) => patch(model, real, n, changes), talks(n)),
  ),
  fc.tuple(person, fc.nat()).map(([n, m]) => command(`read message ${m} of ${n}`, (model, real) => readOne(model, real, n, m), talks(n))),
  person.map((n) => command(`send to ${n}`, (model, real) => send(model, real, n))),
  person.map((n) => command(`read conversation ${n}`, (model, real) => read(model, real, n), talks(n))),
] // prettier-ignore

let texts = 0
const pathOf = (real: Real, { id }: Json) => `/${real.phone}/conversations/${id}`

async function writeIn(model: Model, real: Real, n: number) {
  const { tenant, phone } = real
  const person = personOf(model, n)
  const text = `in ${texts++}`
  const profileName = `Person ${n}`
  const upstreamId = await real.inbound(person.phone, text, profileName)
  const message = await until(async () => {
    const messages: Json[] = await tenant.ok('GET', `/${phone}/messages?limit=5`)
    const found = messages.find(({ message_id }) => message_id === upstreamId)
    expect(found).toBeDefined()
    return found as Json
  })
  model.events.push(told('message.received', { id: upstreamId }))
  const shown = await tenant.ok('GET', pathOf(real, { id: (message as Json).conversation_id }))
  await meet(model, real, n, shown.contact.id, profileName)
  const conversation = person.conversation ?? { shown: { ...shownOf(shown), status: 'open', unread_count: 0 }, inbound: [], read: 0, texts: [] }
  person.conversation = conversation
  conversation.inbound.push(upstreamId)
  conversation.texts.push(text)
  const { shown: before } = conversation
  const reopened = before.status === 'resolved' ? 'open' : before.status
  conversation.shown = { ...before, status: reopened, unread_count: conversation.inbound.length - conversation.read }
  setContact(model, n, person.contact)
  expect(shownOf(shown)).toEqual(conversation.shown)
} // prettier-ignore

/** Who writes is known from then on, by the name of the profile when there was none. */
async function meet(model: Model, { tenant, phone }: Real, n: number, id: string, name: string) {
  const person = personOf(model, n)
  const before = person.contact
  const met = shownOf(await tenant.ok('GET', `/${phone}/contacts/${id}`))
  expect(met).toEqual(before ? { ...before, name: before.name ?? name } : { ...met, phone_number: person.phone, name })
  person.contact = met
  if (!before) model.events.push(told('contact.created', contactFacts(met)))
  else if (before.name === null) model.events.push(told('contact.updated', contactFacts(met, ['name'])))
}

async function patch(model: Model, real: Real, n: number, changes: Json) {
  const conversation = personOf(model, n).conversation as NonNullable<Model['people'][number]['conversation']>
  const before = conversation.shown
  const answer = await real.tenant.call('PATCH', pathOf(real, before), changes)
  if (Object.keys(changes).length === 0) return expectAnswer(answer, 400, 'invalid_field_value')
  const { status: next = before.status, assigned_to: user = before.assignee?.id ?? null } = changes
  const after = { ...before, status: next, assignee: user === null ? null : { id: user, name: null, email: null } }
  expect([answer.status, shownOf(answer.body.data)]).toEqual([200, after])
  conversation.shown = after
  const { id } = before
  const previous = before.assignee?.id ?? null
  if (previous !== user)
    model.events.push(told('conversation.assigned', { id, status: next, user_id: user, previous_user_id: previous, team_id: 0 }))
  if (next === 'resolved' && before.status !== 'resolved') model.events.push(told('conversation.closed', { id }))
} // prettier-ignore

async function readOne(model: Model, { tenant, phone }: Real, n: number, m: number) {
  const conversation = personOf(model, n).conversation as NonNullable<Model['people'][number]['conversation']>
  const index = m % conversation.inbound.length
  const message_id = conversation.inbound[index]
  const answer = await tenant.call('POST', `/${phone}/messages`, { messaging_product: 'chat', status: 'read', message_id })
  expect(answer).toMatchObject({ status: 200, body: { data: { object: 'message', status: 'read', message_id } } })
  conversation.read = Math.max(conversation.read, index + 1)
  conversation.shown = { ...conversation.shown, unread_count: conversation.inbound.length - conversation.read }
  await read(model, { tenant, phone } as Real, n)
} // prettier-ignore

/** A send may take a deleted contact for there so long (services/messaging/sends/known-conversations.ts): nothing is foretold. */
const trustMs = 11_000

async function send(model: Model, { tenant, phone }: Real, n: number) {
  const person = personOf(model, n)
  if (Date.now() - person.deletedAt < trustMs) return
  const body = `out ${texts++}`
  const answer = await tenant.call('POST', `/${phone}/messages`, {
    messaging_product: 'chat',
    to: person.phone,
    type: 'text',
    text: { body },
  })
  if (!person.conversation) return expectAnswer(answer, 422, 'outside_24h_window')
  expect(answer).toMatchObject({ status: 200, body: { data: { type: 'text', conversation_id: person.conversation.shown.id } } })
  person.conversation.texts.push(body)
  const { id } = answer.body.data
  model.events.push(told('message.sent', { id }))
  const message = await until(async () => {
    const shown = await tenant.ok('GET', `/${phone}/messages/${id}`)
    expect(shown.status).toBe('read')
    return shown as Json
  })
  for (const state of ['sent', 'delivered', 'read'])
    model.events.push(told('message.status', { id: (message as Json).message_id, status: state }))
} // prettier-ignore

async function read(model: Model, real: Real, n: number) {
  const { conversation } = personOf(model, n)
  if (!conversation) return
  const { body } = await real.tenant.call('GET', pathOf(real, conversation.shown))
  expect(shownOf(body.data)).toEqual(conversation.shown)
  const messages = await real.tenant.ok('GET', `/${real.phone}/messages?limit=100&conversation_id=${conversation.shown.id}`)
  expect(inOrder(messages.map(({ content }: Json) => content))).toEqual(inOrder(conversation.texts))
} // prettier-ignore
