import fc from 'fast-check'
import { isDeepStrictEqual } from 'node:util'
import { expect } from 'vitest'
import type { Json } from '../../journeys/client.ts'
import { metadata } from './contacts.ts'
import {
  command,
  type Command,
  type Customer,
  customerFacts,
  expectAnswer,
  type Model,
  type Real,
  shownOf,
  told,
} from './model.ts'

const slot = fc.nat({ max: 1 })
const name = fc.constantFrom('Bakery', 'Café ☕', '𝒳'.repeat(200))
const email = fc.option(fc.constantFrom('a@example.com', 'b@example.com'))
const status = fc.constantFrom('active', 'suspended')
const redirect = fc.option(fc.constantFrom('https://shop.example/ok', 'http://shop.example/no'))

const isMade = (n: number) => (model: Readonly<Model>) => model.customers[n]?.shown !== null
const hasLinks = (n: number) => (model: Readonly<Model>) => (model.customers[n]?.links.length ?? 0) > 0

export const customerCommands: fc.Arbitrary<Command>[] = [
  fc.tuple(slot, fc.record({ name, email, metadata }, { requiredKeys: ['name'] })).map(([n, given]) =>
    command(`create customer ${n} ${JSON.stringify(given)}`, (model, real) => create(model, real, n, given)),
  ),
  fc.tuple(slot, fc.record({ name, email, metadata: fc.option(metadata), status }, { requiredKeys: [] })).map(([n, changes]) =>
    command(`patch customer ${n} ${JSON.stringify(changes)}`, (model, real) => patch(model, real, n, changes), isMade(n)),
  ),
  slot.map((n) => command(`archive customer ${n}`, (model, real) => archive(model, real, n), isMade(n))),
  slot.map((n) => command(`create link ${n}`, (model, real) => createLink(model, real, n), isMade(n))),
  fc.tuple(slot, fc.nat(), fc.record({ success_redirect_url: redirect, failure_redirect_url: redirect }, { requiredKeys: [] })).map(([n, m, changes]) =>
    command(`patch link ${n} ${m} ${JSON.stringify(changes)}`, (model, real) => patchLink(model, real, n, m, changes), hasLinks(n)),
  ),
  fc.tuple(slot, fc.nat()).map(([n, m]) => command(`revoke link ${n} ${m}`, (model, real) => revokeLink(model, real, n, m), hasLinks(n))),
  slot.map((n) => command(`read customer ${n}`, (model, real) => read(model, real, n), isMade(n))),
] // prettier-ignore

const customerOf = (model: Model, n: number) => model.customers[n] as Customer
const tell = (model: Model, what: string, shown: Json) =>
  model.events.push(told(`customer.${what}`, customerFacts(shown)))

/** In the place of another one, which stays as it is. */
async function create(model: Model, { tenant }: Real, n: number, given: Json) {
  const answer = await tenant.call('POST', '/customers', given)
  const { id, team_id, created_at } = answer.body.data ?? {}
  const bare = { email: null, metadata: {}, archived_at: null }
  const shown = { id, object: 'customer', status: 'pending', ...bare, ...given, team_id, created_at }
  expectAnswer(answer, 201, shown)
  model.customers[n] = { shown, links: [] }
  tell(model, 'created', shown)
}

async function patch(model: Model, { tenant }: Real, n: number, changes: Json) {
  const customer = customerOf(model, n)
  const before = customer.shown
  const answer = await tenant.call('PATCH', `/customers/${before.id}`, changes)
  if (before.status === 'archived') return expectAnswer(answer, 409, 'customer_archived')
  const after = { ...before, ...changes }
  after.metadata ??= {}
  expectAnswer(answer, 200, after)
  customer.shown = after
  if (!isDeepStrictEqual(after, before)) tell(model, 'updated', after)
}

async function archive(model: Model, { tenant }: Real, n: number) {
  const customer = customerOf(model, n)
  const { shown } = customer
  const answer = await tenant.call('DELETE', `/customers/${shown.id}`)
  const isFirst = shown.status !== 'archived'
  const archivedAt: unknown = isFirst ? answer.body.data?.archived_at : shown.archived_at
  expect(archivedAt).toMatch(/Z$/)
  customer.shown = { ...shown, status: 'archived', archived_at: archivedAt }
  expectAnswer(answer, 200, customer.shown)
  if (!isFirst) return
  customer.links = customer.links.map((link) => ({ ...link, status: 'revoked' }))
  tell(model, 'archived', customer.shown)
}

async function createLink(model: Model, { tenant }: Real, n: number) {
  const { shown, links } = customerOf(model, n)
  const answer = await tenant.call('POST', `/customers/${shown.id}/setup_links`, {})
  if (['suspended', 'archived'].includes(shown.status)) return expectAnswer(answer, 422, 'customer_suspended')
  expect(answer).toMatchObject({ status: 201, body: { data: { status: 'active', customer_id: shown.id } } })
  const { setup_url, ...link } = answer.body.data
  expect(setup_url.endsWith(link.token_last4)).toBe(true)
  links.push(link)
  model.events.push(told('customer.setup_link.created', { customer: shown.id, link: link.id }))
}

async function patchLink(model: Model, { tenant }: Real, n: number, m: number, changes: Json) {
  const { shown, links } = customerOf(model, n)
  const index = m % links.length
  const link = links[index]
  const answer = await tenant.call('PATCH', `/customers/${shown.id}/setup_links/${link.id}`, changes)
  if (Object.keys(changes).length === 0) return expectAnswer(answer, 400, 'invalid_field_value')
  if (link.status !== 'active') return expectAnswer(answer, 409, 'setup_link_inactive')
  links[index] = { ...link, ...changes }
  expectAnswer(answer, 200, links[index])
}

async function revokeLink(model: Model, { tenant }: Real, n: number, m: number) {
  const { shown, links } = customerOf(model, n)
  const index = m % links.length
  const link = links[index]
  const answer = await tenant.call('DELETE', `/customers/${shown.id}/setup_links/${link.id}`)
  if (link.status !== 'active') return expectAnswer(answer, 409, 'setup_link_inactive')
  links[index] = { ...link, status: 'revoked' }
  expectAnswer(answer, 200, links[index])
}

async function read(model: Model, { tenant }: Real, n: number) {
  const { shown, links } = customerOf(model, n)
  expectAnswer(await tenant.call('GET', `/customers/${shown.id}`), 200, { ...shown, accounts: [] })
  const listed: Json[] = await tenant.ok('GET', `/customers/${shown.id}/setup_links?limit=100`)
  expect(listed.map(shownOf)).toEqual(links.toReversed())
}
