import fc from 'fast-check'
import { isDeepStrictEqual } from 'node:util'
import type { Json } from '../../journeys/client.ts'
import { command, type Command, contactFacts, expectAnswer, type Model, type Real, shownOf, told } from './model.ts'

const fields = ['name', 'email', 'metadata'] as const

const name = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }).filter((text) => !text.includes('\0'))
const email = fc.constantFrom('ana@example.com', 'bo@example.org')
const key = fc
  .string({ unit: 'grapheme', maxLength: 10 })
  .filter((text) => !['__proto__', 'constructor'].includes(text) && !text.includes('\0'))
const leaf = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 5 }),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.constantFrom(null, true),
)
/** As JSON has it: 0 has no sign there. */
export const metadata = fc
  .dictionary(key, fc.oneof(leaf, fc.array(leaf, { maxLength: 3 })), { maxKeys: 4 })
  .map((value) => JSON.parse(JSON.stringify(value)) as Json)
  .filter((value) => !JSON.stringify(value).includes('\\u0000'))

const person = fc.nat({ max: 3 })

export const contactCommands: fc.Arbitrary<Command>[] = [
  fc.tuple(person, fc.record({ name, email, metadata }, { requiredKeys: [] })).map(([n, given]) =>
    command(`create contact ${n} ${JSON.stringify(given)}`, (model, real) => create(model, real, n, given)),
  ),
  fc.tuple(person, fc.record({ name: fc.option(name), email, metadata: fc.option(metadata) }, { requiredKeys: [] })).map(([n, changes]) =>
    command(`patch contact ${n} ${JSON.stringify(changes)}`, (model, real) => patch(model, real, n, changes), ({ people }) => people[n]?.contact !== null),
  ),
  person.map((n) => command(`read contact ${n}`, (model, real) => read(model, real, n), ({ people }) => people[n]?.contact !== null)),
  person.map((n) => command(`delete contact ${n}`, (model, real) => remove(model, real, n), ({ people }) => people[n]?.contact !== null)),
] // prettier-ignore

export const personOf = (model: Model, n: number) => model.people[n] as Model['people'][number]
export const pathOf = (real: Real, contact: Json) => `/${real.phone}/contacts/${contact.id}`

async function create(model: Model, { tenant, phone }: Real, n: number, given: Json) {
  const person = personOf(model, n)
  const answer = await tenant.call('POST', `/${phone}/contacts`, { phone_number: person.phone, ...given })
  if (person.contact) return expectAnswer(answer, 200, person.contact)
  const { id, created_at, chat_account } = answer.body.data ?? {}
  const bare = { phone_number: person.phone, bsuid: null, parent_bsuid: null, username: null, name: null, email: null, metadata: null }
  person.contact = { id, object: 'contact', ...bare, ...given, chat_account, created_at }
  expectAnswer(answer, 201, person.contact)
  model.events.push(told('contact.created', contactFacts(person.contact)))
} // prettier-ignore

async function patch(model: Model, real: Real, n: number, changes: Json) {
  const person = personOf(model, n)
  const before = person.contact
  const after = { ...before, ...changes }
  expectAnswer(await real.tenant.call('PATCH', pathOf(real, before), changes), 200, after)
  setContact(model, n, after)
  const changed = fields.filter((field) => !isDeepStrictEqual(before[field], after[field]))
  if (changed.length > 0) model.events.push(told('contact.updated', contactFacts(after, changed)))
}

/** A conversation shows its contact's name. */
export function setContact(model: Model, n: number, contact: Json): void {
  const person = personOf(model, n)
  person.contact = contact
  if (!person.conversation) return
  const { id, phone_number, name: shownName } = contact
  person.conversation.shown = { ...person.conversation.shown, contact: { id, phone_number, name: shownName } }
}

async function read(model: Model, real: Real, n: number) {
  const { contact, phone } = personOf(model, n)
  expectAnswer(await real.tenant.call('GET', pathOf(real, contact)), 200, contact)
  const found = await real.tenant.ok('GET', `/${real.phone}/contacts?phone_number=${encodeURIComponent(phone)}`)
  expectAnswer({ status: 200, headers: {}, body: { data: shownOf(found[0]) } }, 200, contact)
}

async function remove(model: Model, real: Real, n: number) {
  const person = personOf(model, n)
  const { id } = person.contact
  const path = pathOf(real, person.contact)
  expectAnswer(await real.tenant.call('DELETE', path), 200, { id, object: 'contact', deleted: true })
  for (const method of ['GET', 'PATCH', 'DELETE'] as const)
    expectAnswer(await real.tenant.call(method, path, method === 'PATCH' ? {} : undefined), 404, 'resource_not_found')
  if (person.conversation) {
    const { shown } = person.conversation
    const nobody = { ...shown, contact: { id, phone_number: null, name: null } }
    expectAnswer(await real.tenant.call('GET', `/${real.phone}/conversations/${shown.id}`), 200, nobody)
  }
  // Whoever writes again is somebody new.
  Object.assign(person, { contact: null, conversation: null, labelIds: new Set(), deletedAt: Date.now() })
}
