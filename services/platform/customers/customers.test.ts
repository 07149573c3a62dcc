import { systemCaller } from '@app/shared/bus/ask.ts'
import type { Input } from '@app/shared/api/contract.ts'
import type { listCustomers as List } from '@app/shared/contracts/customers.ts'
import { newId } from '@app/shared/values/ids.ts'
import { untilSomebodyWaits } from '@app/test/lock-waits.ts'
import { until } from '@app/test/until.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { updateOrganization } from '../organizations/update-organization.ts'
import { createTeam } from '../teams/create-team.ts'
import {
  ask,
  connect,
  eventsOf,
  newCustomer,
  newOrganization,
  startPeers,
  startTestApp,
  type TestApp,
} from '../testing/app.ts'
import { archiveCustomer } from './archive-customer.ts'
import { createCustomer } from './create-customer.ts'
import { getCustomer } from './get-customer.ts'
import { listCustomers } from './list-customers.ts'
import { restoreCustomer } from './restore-customer.ts'
import { updateCustomer } from './update-customer.ts'

let it: TestApp
let peers: Awaited<ReturnType<typeof startPeers>>
beforeAll(async () => {
  it = await startTestApp()
  peers = await startPeers(it.app)
})
afterAll(async () => {
  await peers.stop()
  await it.close()
})

type Standing = Pick<Parameters<typeof updateOrganization>[1]['body'], 'subscription' | 'features'>
type Changes = Parameters<typeof updateCustomer>[1]['body']

const as = (organizationId: string) => ({ caller: systemCaller(organizationId) })
const create = (organizationId: string, body: Parameters<typeof createCustomer>[1]['body']) =>
  ask(it.app, createCustomer, body, as(organizationId))
const update = (organizationId: string, id: string, body: Changes) =>
  ask(it.app, updateCustomer, body, { params: { id }, ...as(organizationId) })
const get = (organizationId: string, id: string) =>
  ask(it.app, getCustomer, undefined, { params: { id }, ...as(organizationId) })
const archive = (organizationId: string, id: string) =>
  ask(it.app, archiveCustomer, undefined, { params: { id }, ...as(organizationId) })
const list = (organizationId: string, query: Input<typeof List>['query']) =>
  ask(it.app, listCustomers, undefined, { query, ...as(organizationId) })

const typesOf = async (organizationId: string) => (await eventsOf(it.app, organizationId)).map(({ type }) => type)

test('a new customer is pending, in the only team, and its event has exactly the fields of the record', async () => {
  const organizationId = await newOrganization(it.app)
  const customer = await create(organizationId, { name: 'Bakery', email: 'b@bakery.example', metadata: { plan: 1 } })
  expect(customer).toEqual({
    id: expect.stringMatching(/^cus_/),
    object: 'customer',
    name: 'Bakery',
    email: 'b@bakery.example',
    status: 'pending',
    metadata: { plan: 1 },
    archived_at: null,
    team_id: expect.stringMatching(/^team_/),
    created_at: expect.any(String),
    updated_at: customer.created_at,
  })
  const { email: _, ...record } = customer
  expect(await eventsOf(it.app, organizationId)).toEqual([
    { type: 'customer.created', data: { customer: record }, line: customer.id, phone: undefined },
  ])
  expect(await get(organizationId, customer.id)).toEqual({ ...customer, accounts: [] })
})

test('with several teams team_id is required, and must be one of its own', async () => {
  const organization_id = await newOrganization(it.app)
  const { id: second } = await ask(it.app, createTeam, { organization_id, name: 'Second' })
  const foreign = await ask(it.app, createTeam, { organization_id: await newOrganization(it.app), name: 'Foreign' })
  for (const team_id of [undefined, foreign.id, newId('team')]) {
    await expect(create(organization_id, { name: 'x', team_id })).rejects.toMatchObject({
      failure: 'invalid_field_value',
      param: 'team_id',
    })
  }
  expect(await create(organization_id, { name: 'x', team_id: second })).toMatchObject({ team_id: second })
})

test('a change is told once, and one that changes nothing neither told nor dated', async () => {
  const organizationId = await newOrganization(it.app)
  const id = await newCustomer(it.app, organizationId, { email: 'a@b.example', metadata: { b: [1, { c: 2 }], a: 1 } })
  const changed = await update(organizationId, id, { name: 'Renamed', email: null })
  expect(changed).toMatchObject({ name: 'Renamed', email: null, metadata: { a: 1 }, status: 'pending' })
  const same = { name: 'Renamed', email: null, metadata: { a: 1, b: [1, { c: 2 }] } }
  for (const body of [{}, same]) expect(await update(organizationId, id, body)).toEqual(changed)
  expect(await typesOf(organizationId)).toEqual(['customer.created', 'customer.updated'])
  expect(await update(organizationId, id, { metadata: null })).toMatchObject({ metadata: {} })
})

test('a change that waited for another one keeps it', async () => {
  const organizationId = await newOrganization(it.app)
  const id = await newCustomer(it.app, organizationId)
  await Promise.all([
    update(organizationId, id, { name: 'Renamed' }),
    update(organizationId, id, { email: 'a@b.example' }),
    update(organizationId, id, { metadata: { a: 1 } }),
  ])
  expect(await get(organizationId, id)).toMatchObject({ name: 'Renamed', email: 'a@b.example', metadata: { a: 1 } })
})

test("many changes at once leave connections to another organization's", async () => {
  const organizationId = await newOrganization(it.app)
  const other = await newOrganization(it.app)
  const id = await newCustomer(it.app, organizationId)
  // They wait for a second at most, which is over sooner on a machine that is busy with other things.
  await until(async () => {
    let changes: Promise<unknown>[] = []
    await it.app.sql.begin(async (tx) => {
      await tx`select id from organizations where id = ${organizationId} for no key update`
      changes = Array.from({ length: 30 }, (_, n) => update(organizationId, id, { name: `${n}` }))
      changes.push(...Array.from({ length: 10 }, () => create(organizationId, { name: 'x' })))
      expect((await list(other, {})).data).toEqual([])
    })
    const ended = await Promise.allSettled(changes)
    expect(ended.map(({ status }) => status)).toEqual(ended.map(() => 'fulfilled'))
  })
})

test('messaging refuses and directory knows before a suspension, a rename or an archive answers', async () => {
  const organizationId = await newOrganization(it.app)
  const id = await newCustomer(it.app, organizationId)
  const { account_id } = await connect(it, organizationId, undefined, {}, { customer_id: id })
  const last = (service: 'messaging' | 'directory') =>
    peers.told[service].findLast((state) => state.account_id === account_id)
  expect(last('messaging')).toMatchObject({ refusal: null, customer: { id, name: 'Bakery' }, version: 1 })
  await update(organizationId, id, { status: 'suspended' })
  expect(last('messaging')).toMatchObject({ refusal: 'customer_suspended', version: 2 })
  await update(organizationId, id, { status: 'active', name: 'Renamed' })
  expect(last('messaging')).toMatchObject({ refusal: null, version: 3 })
  expect(last('directory')).toMatchObject({ customer: { id, name: 'Renamed' }, version: 3 })
  await archive(organizationId, id)
  expect(last('messaging')).toMatchObject({ refusal: 'customer_suspended', attached: true, version: 4 })
})

test("a change of the organization just before is minded in what others hear of a customer's numbers", async () => {
  const organizationId = await newOrganization(it.app)
  const id = await newCustomer(it.app, organizationId)
  await connect(it, organizationId, undefined, {}, { customer_id: id })
  const { renaming } = await it.app.sql.begin(async (tx) => {
    await tx`update organizations set settings = '{"ordering":"relaxed"}' where id = ${organizationId}`
    const renaming = update(organizationId, id, { name: 'Renamed' })
    await Promise.race([renaming, untilSomebodyWaits(it.app.sql)])
    return { renaming }
  })
  await renaming
  const told = { customer: { id, name: 'Renamed' }, settings: { ordering: 'relaxed' } }
  expect(peers.told.messaging.at(-1)).toMatchObject(told)
})

test('archiving again answers the same and tells nothing; an archived customer takes no change', async () => {
  const organizationId = await newOrganization(it.app)
  const id = await newCustomer(it.app, organizationId)
  const archived = await archive(organizationId, id)
  expect(archived).toMatchObject({ status: 'archived', archived_at: archived.updated_at })
  expect(await archive(organizationId, id)).toEqual(archived)
  await expect(update(organizationId, id, { name: 'x' })).rejects.toMatchObject({ failure: 'customer_archived' })
  const events = await eventsOf(it.app, organizationId)
  expect(events.map(({ type }) => type)).toEqual(['customer.created', 'customer.archived'])
  const { email: _, ...record } = archived
  expect(events[1]?.data).toEqual({ customer: record })
})

test('a restored customer is pending without a number, active with one it ever had', async () => {
  const organizationId = await newOrganization(it.app)
  const bare = await newCustomer(it.app, organizationId)
  const owner = await newCustomer(it.app, organizationId)
  await connect(it, organizationId, undefined, {}, { customer_id: owner })
  for (const [customer_id, status] of [
    [bare, 'pending'],
    [owner, 'active'],
  ] as const) {
    await archive(organizationId, customer_id)
    const restored = await ask(it.app, restoreCustomer, { customer_id })
    expect(restored).toMatchObject({ status, archived_at: null })
    expect(await ask(it.app, restoreCustomer, { customer_id })).toEqual(restored)
  }
  expect(peers.told.messaging.at(-1)).toMatchObject({ refusal: null, customer: { id: owner } })
  expect((await typesOf(organizationId)).slice(-2)).toEqual(['customer.archived', 'customer.updated'])
  await expect(ask(it.app, restoreCustomer, { customer_id: newId('cus') })).rejects.toMatchObject({
    failure: 'resource_not_found',
    param: 'customer_id',
  })
})

test('what becomes of a customer becomes of no other one of the organization', async () => {
  const organizationId = await newOrganization(it.app)
  const [id, archived, other] = [
    await newCustomer(it.app, organizationId),
    await newCustomer(it.app, organizationId),
    await newCustomer(it.app, organizationId),
  ]
  await archive(organizationId, archived)
  const others = async () => [await get(organizationId, archived), await get(organizationId, other)]
  const before = await others()
  await update(organizationId, id, { name: 'New' })
  await connect(it, organizationId, undefined, {}, { customer_id: id })
  await archive(organizationId, id)
  await ask(it.app, restoreCustomer, { customer_id: id })
  expect(await others()).toEqual(before)
})

test('a lapsed subscription and a missing entitlement stop changes at once, and no reading', async () => {
  const organizationId = await newOrganization(it.app)
  const id = await newCustomer(it.app, organizationId)
  const changes = [
    () => create(organizationId, { name: 'x' }),
    () => update(organizationId, id, { name: 'x' }),
    () => archive(organizationId, id),
  ]
  const standings: Array<[Standing, string]> = [
    [{ subscription: 'lapsed' }, 'subscription_lapsed'],
    [{ subscription: 'active', features: ['messaging'] }, 'feature_not_entitled'],
  ]
  for (const [standing, failure] of standings) {
    await ask(it.app, updateOrganization, { organization_id: organizationId, ...standing })
    for (const change of changes) await expect(change()).rejects.toMatchObject({ failure })
  }
  expect(await get(organizationId, id)).toMatchObject({ name: 'Bakery' })
  expect((await list(organizationId, {})).data).toHaveLength(1)
})

test("another organization's customer is as absent as one that never was", async () => {
  const organizationId = await newOrganization(it.app)
  const foreign = await newCustomer(it.app, await newOrganization(it.app))
  for (const id of [foreign, newId('cus')]) {
    const questions = [
      () => get(organizationId, id),
      () => update(organizationId, id, { name: 'x' }),
      () => archive(organizationId, id),
    ]
    for (const question of questions) {
      await expect(question()).rejects.toMatchObject({ failure: 'resource_not_found', param: undefined })
    }
  }
  expect((await list(organizationId, {})).data).toEqual([])
})

test('lists newest first, by status, team and a part of name or address, with nothing special about % and _', async () => {
  const organization_id = await newOrganization(it.app)
  const { id: team_id } = await ask(it.app, createTeam, { organization_id, name: 'Second' })
  const [{ id: firstTeam } = { id: '' }] = await it.app.sql<{ id: string }[]>`
    select id from teams where organization_id = ${organization_id} and name = 'Default'
  `
  const bakery = await newCustomer(it.app, organization_id, { team_id: firstTeam, email: 'Bruno@Oven.example' })
  const percent = await newCustomer(it.app, organization_id, { team_id, name: '100 %_\\ Wool für ÉVA' })
  await archive(organization_id, percent)
  const idsOf = async (query: Input<typeof List>['query']) => {
    const { data } = await list(organization_id, query)
    return data.map(({ id }) => id)
  }
  expect(await idsOf({})).toEqual([percent, bakery])
  expect(await idsOf({ status: 'archived' })).toEqual([percent])
  expect(await idsOf({ team_id: firstTeam })).toEqual([bakery])
  expect(await idsOf({ team_id: newId('team') })).toEqual([])
  for (const search of ['BAKE', 'bruno@oven']) expect(await idsOf({ search })).toEqual([bakery])
  for (const search of ['%', '_', '\\', '%_\\ wool', 'FÜR éva']) expect(await idsOf({ search })).toEqual([percent])
})

test.each([
  ['an update', (organizationId: string, id: string) => update(organizationId, id, { name: 'Later' })],
  ['archiving', archive],
])('%s that waited for another change of the customer bears a later time than that', async (_, change) => {
  const organizationId = await newOrganization(it.app)
  const { id } = await create(organizationId, { name: 'Bakery' })
  let waiting: ReturnType<typeof change> | undefined
  const earlier = await it.app.sql.begin(async (tx) => {
    await tx`select id from customers where id = ${id} for no key update`
    waiting = change(organizationId, id)
    await untilSomebodyWaits(it.app.sql)
    const [row] = await tx<[{ updatedAt: Date }]>`
      update customers set name = 'Earlier', updated_at = clock_timestamp() where id = ${id} returning updated_at
    `
    return row.updatedAt
  })
  const { updated_at: later } = (await waiting) ?? { updated_at: '' }
  expect(Date.parse(later)).toBeGreaterThanOrEqual(earlier.getTime())
})

test.each<[string, (organizationId: string) => Promise<unknown>]>([
  ['searches', (organizationId) => list(organizationId, { search: 'bakery' })],
  ['lists', (organizationId) => list(organizationId, {})],
  ['looks at a customer', (organizationId) => get(organizationId, newId('cus')).catch(() => null)],
])("one organization's %s leave connections for others", async (_what, read) => {
  const organizationId = await newOrganization(it.app)
  let ended = 0
  const reads = await it.app.sql.begin(async (tx) => {
    // They take as long as one among many customers.
    await tx`lock table customers`
    const all = Promise.allSettled(Array.from({ length: 30 }, () => read(organizationId).finally(() => ended++)))
    await untilSomebodyWaits(it.app.sql)
    await it.app.sql`select 1`
    expect(ended).toBe(0)
    return { all }
  })
  expect((await reads.all).filter(({ status }) => status === 'fulfilled')).toHaveLength(30)
})
