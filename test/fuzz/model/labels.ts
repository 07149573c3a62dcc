import fc from 'fast-check'
import { expect } from 'vitest'
import type { Json } from '../../journeys/client.ts'
import { pathOf, personOf } from './contacts.ts'
import { command, type Command, expectAnswer, inOrder, type Model, type Real, told } from './model.ts'

const slot = fc.nat({ max: 2 })
const person = fc.nat({ max: 3 })
/** Some differ in their case alone. */
const name = fc.constantFrom('VIP', 'vip', 'Gold', 'İstanbul', 'ß')
const color = fc.constantFrom('red', 'sky', 'gray')

const isMade = (n: number) => (model: Readonly<Model>) => model.labels[n] !== null
const isAttachable = (n: number, m: number) => (model: Readonly<Model>) =>
  model.labels[n] !== null && model.people[m]?.contact !== null

export const labelCommands: fc.Arbitrary<Command>[] = [
  fc.tuple(slot, name, color).map(([n, ...given]) =>
    command(`create label ${n} ${given.join()}`, (model, real) => create(model, real, n, ...given), ({ labels }) => labels[n] === null),
  ),
  fc.tuple(slot, fc.record({ name, color }, { requiredKeys: [] })).map(([n, changes]) =>
    command(`patch label ${n} ${JSON.stringify(changes)}`, (model, real) => patch(model, real, n, changes), isMade(n)),
  ),
  slot.map((n) => command(`delete label ${n}`, (model, real) => remove(model, real, n), isMade(n))),
  fc.tuple(slot, person, fc.boolean()).map(([n, m, on]) =>
    command(`${on ? 'attach' : 'detach'} label ${n} contact ${m}`, (model, real) => set(model, real, n, m, on), isAttachable(n, m)),
  ),
  fc.tuple(slot, fc.uniqueArray(person), fc.boolean()).map(([n, all, on]) =>
    command(`${on ? 'attach' : 'detach'} label ${n} contacts ${all.join()}`, (model, real) => bulk(model, real, n, all, on), isMade(n)),
  ),
] // prettier-ignore

/** Two names of a team differ in more than their case. */
const isTaken = (model: Model, n: number, wanted: string) =>
  model.labels.some((label, m) => m !== n && label?.name.toLowerCase() === wanted.toLowerCase())

async function create(model: Model, { tenant }: Real, n: number, given: string, shade: string) {
  const answer = await tenant.call('POST', '/labels', { name: given, color: shade })
  if (isTaken(model, n, given)) return expectAnswer(answer, 409, 'label_already_exists')
  const { id, team_id, created_at } = answer.body.data ?? {}
  model.labels[n] = { id, object: 'label', name: given, color: shade, team_id, created_at }
  expectAnswer(answer, 201, model.labels[n])
}

async function patch(model: Model, { tenant }: Real, n: number, changes: Json) {
  const path = `/labels/${model.labels[n].id}`
  const answer = await tenant.call('PATCH', path, changes)
  if (changes.name && isTaken(model, n, changes.name)) return expectAnswer(answer, 409, 'label_already_exists')
  model.labels[n] = { ...model.labels[n], ...changes }
  expectAnswer(answer, 200, model.labels[n])
  expectAnswer(await tenant.call('GET', path), 200, model.labels[n])
}

async function remove(model: Model, { tenant }: Real, n: number) {
  const { id } = model.labels[n]
  expectAnswer(await tenant.call('DELETE', `/labels/${id}`), 200, { id, object: 'label', deleted: true })
  expectAnswer(await tenant.call('GET', `/labels/${id}`), 404, 'resource_not_found')
  expect(await tenant.ok('GET', '/labels')).not.toContainEqual(expect.objectContaining({ id }))
  model.labels[n] = null
  model.people.forEach((_, m) => note(model, id, m, false))
}

async function set(model: Model, real: Real, n: number, m: number, on: boolean) {
  const { id } = model.labels[n]
  const { contact } = personOf(model, m)
  const path = `${pathOf(real, contact)}/labels`
  const { tenant } = real
  const answer = await (on ? tenant.call('POST', path, { label_id: id }) : tenant.call('DELETE', `${path}/${id}`))
  expectAnswer(answer, 200, { contact_id: contact.id, label_id: id, attached: on })
  note(model, id, m, on)
  const labelled = await tenant.ok('GET', `/${real.phone}/contacts?label_id=${id}`)
  const expected = model.people.filter(({ labelIds }) => labelIds.has(id)).map((one) => one.contact.id)
  expect(inOrder(labelled.map((one: Json) => one.id))).toEqual(inOrder(expected))
}

async function bulk(model: Model, { tenant, phone }: Real, n: number, all: number[], on: boolean) {
  const { id } = model.labels[n]
  const known = all.filter((m) => personOf(model, m).contact !== null)
  const contact_ids = [...known.map((m) => personOf(model, m).contact.id), 'nobody', 'nobody']
  const operation = on ? 'attach' : 'detach'
  const answer = await tenant.call('POST', `/${phone}/contacts/bulk_label`, { contact_ids, label_id: id, operation })
  expectAnswer(answer, 200, { applied: known.length, skipped_cross_org: 1, skipped_team_mismatch: 0 })
  for (const m of known) note(model, id, m, on)
}

/** Only a real change is told. */
function note(model: Model, labelId: string, m: number, on: boolean) {
  const { contact, labelIds } = personOf(model, m)
  if (contact === null || labelIds.has(labelId) === on) return
  if (on) labelIds.add(labelId)
  else labelIds.delete(labelId)
  model.events.push(told('contact.updated', { id: contact.id, changed: ['labels'] }))
}
