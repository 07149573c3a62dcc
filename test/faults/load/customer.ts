import { setTimeout as sleep } from 'node:timers/promises'
import type { Customer, ExpectedEvent } from '../history/history.ts'
import { between, oneOf, type Random, randomOf } from '../random.ts'
import type { Scene } from './person.ts'
import type { LoadTenant } from './tenants.ts'

interface Desk {
  scene: Scene
  tenant: LoadTenant
  random: Random
  /** Unique, as that of a person. */
  name: string
  turn: number
}

/** One customer of an organization after the other: made, changed some times, given setup links, archived. */
export async function playCustomers(scene: Scene, tenant: LoadTenant, n: number): Promise<void> {
  const name = `${tenant.word}-customer-${n}`
  const desk: Desk = { scene, tenant, random: randomOf(scene.seed, name), name, turn: 0 }
  while (!scene.isOver()) {
    await playCustomer(desk).catch((err: Error) => scene.history.complaints.push(`${name}: ${err.message}`))
    await sleep(between(desk.random, 50, 400))
  }
}

async function playCustomer(desk: Desk) {
  const customer = await create(desk)
  for (let acts = between(desk.random, 1, 6); acts > 0 && !desk.scene.isOver(); acts--) {
    await sleep(between(desk.random, 50, 900))
    await oneOf(desk.random, [rename, rename, link])(desk, customer)
  }
  if (desk.random() < 0.7) await archive(desk, customer)
}

const wordOf = (desk: Desk) => `${desk.name}-${(desk.turn += 1)}.`

function expectOf({ scene, tenant }: Desk, line: string, event: Pick<ExpectedEvent, 'type' | 'word' | 'notBefore'>) {
  scene.history.expected.push({ tenant: tenant.id, phone: null, line, ...event })
}

/** Asks with a key, and one time in three again: whoever is not sure of it gets the same. */
async function post({ tenant, random }: Desk, path: string, body: object, key: string) {
  const data = await tenant.client.data(random, 'POST', path, { body, key })
  if (random() < 0.35) await tenant.client.data(random, 'POST', path, { body, key })
  return data
}

async function create(desk: Desk): Promise<Customer> {
  const name = wordOf(desk)
  const notBefore = Date.now()
  const { id, status } = await post(desk, '/customers', { name }, name)
  expectOf(desk, id, { type: 'customer.created', word: `"name":"${name}"`, notBefore })
  const customer = { tenant: desk.tenant.id, id, name, status }
  desk.scene.history.customers.push(customer)
  return customer
}

async function rename(desk: Desk, customer: Customer) {
  const { tenant, random } = desk
  const name = wordOf(desk)
  expectOf(desk, customer.id, { type: 'customer.updated', word: `"name":"${name}"`, notBefore: Date.now() })
  await tenant.client.data(random, 'PATCH', `/customers/${customer.id}`, { body: { name } })
  customer.name = name
}

async function link(desk: Desk, customer: Customer) {
  const notBefore = Date.now()
  const word = wordOf(desk)
  const url = `https://${word}example/connected`
  const body = { success_redirect_url: url, failure_redirect_url: url }
  const { id } = await post(desk, `/customers/${customer.id}/setup_links`, body, word)
  expectOf(desk, customer.id, { type: 'customer.setup_link.created', word: `"id":"${id}"`, notBefore })
}

async function archive(desk: Desk, customer: Customer) {
  const { tenant, random } = desk
  expectOf(desk, customer.id, { type: 'customer.archived', word: `"id":"${customer.id}"`, notBefore: Date.now() })
  await tenant.client.data(random, 'DELETE', `/customers/${customer.id}`)
  customer.status = 'archived'
}
