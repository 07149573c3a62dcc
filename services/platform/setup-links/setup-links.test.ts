import { systemCaller } from '@app/shared/bus/ask.ts'
import type { Input } from '@app/shared/api/contract.ts'
import type { listSetupLinks as List } from '@app/shared/contracts/customers.ts'
import type { Sql, TransactionSql } from '@app/shared/database/database.ts'
import { newId } from '@app/shared/values/ids.ts'
import { untilSomebodyWaits, untilWaitedFor } from '@app/test/lock-waits.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { archiveCustomer } from '../customers/archive-customer.ts'
import { restoreCustomer } from '../customers/restore-customer.ts'
import { updateCustomer } from '../customers/update-customer.ts'
import { hashOf } from '../keys/keys.ts'
import { updateOrganization } from '../organizations/update-organization.ts'
import { ask, eventsOf, newCustomer, newOrganization, startPeers, startTestApp, type TestApp } from '../testing/app.ts'
import { createSetupLink } from './create-setup-link.ts'
import { findLinkByToken } from './find-link.ts'
import { listSetupLinks } from './list-setup-links.ts'
import { revokeSetupLink } from './revoke-setup-link.ts'
import { updateSetupLink } from './update-setup-link.ts'

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
type Wanted = Parameters<typeof createSetupLink>[1]['body']

async function customerOf(organizationId?: string) {
  const organization = organizationId ?? (await newOrganization(it.app))
  const id = await newCustomer(it.app, organization)
  const caller = systemCaller(organization)
  return {
    id,
    organization,
    caller,
    create: (body: Wanted = {}) => ask(it.app, createSetupLink, body, { params: { id }, caller }),
    list: (query: Input<typeof List>['query'] = {}) =>
      ask(it.app, listSetupLinks, undefined, { params: { id }, query, caller }),
    update: (link_id: string, body: Parameters<typeof updateSetupLink>[1]['body']) =>
      ask(it.app, updateSetupLink, body, { params: { id, link_id }, caller }),
    revoke: (link_id: string) => ask(it.app, revokeSetupLink, undefined, { params: { id, link_id }, caller }),
    expire: (link_id: string) =>
      it.app.sql`update setup_links set expires_at = now() - interval '1 ms' where id = ${link_id}`,
  }
}

const tokenOf = (setupUrl: string) => setupUrl.slice('https://messaging.example/setup/'.length)

test.each([{ status: 'consumed' }, {}] as const)(
  "one organization's lists %o leave connections for others",
  async (query) => {
    const customer = await customerOf()
    let ended = 0
    const lists = await it.app.sql.begin(async (tx) => {
      // They take as long as those of a customer with very many links.
      await tx`lock table setup_links`
      const list = () => customer.list(query).finally(() => ended++)
      const all = Promise.allSettled(Array.from({ length: 30 }, list))
      await untilSomebodyWaits(it.app.sql)
      await it.app.sql`select 1`
      expect(ended).toBe(0)
      return { all }
    })
    expect((await lists.all).filter(({ status }) => status === 'fulfilled')).toHaveLength(30)
  },
)

test.each(['create', 'update'] as const)('many links to %s at once leave connections for others', async (what) => {
  const customer = await customerOf()
  const { id } = await customer.create()
  const change = () => (what === 'create' ? customer.create() : customer.update(id, { success_redirect_url: null }))
  let ended = 0
  const changes = await it.app.sql.begin(async (tx) => {
    await tx`select id from customers where id = ${customer.id} for no key update`
    await tx`select id from setup_links where id = ${id} for no key update`
    const all = Promise.allSettled(Array.from({ length: 30 }, () => change().finally(() => ended++)))
    await untilSomebodyWaits(tx)
    await it.app.sql`select 1`
    expect(ended).toBe(0)
    return { all }
  })
  await changes.all
})

test('a link is active for a week, and its event is the link without its URL', async () => {
  const customer = await customerOf()
  const { setup_url, ...link } = await customer.create({ success_redirect_url: 'https://shop.example/ok' })
  expect(setup_url).toMatch(/^https:\/\/messaging\.example\/setup\/[\w-]{43}$/)
  expect(link).toEqual({
    id: expect.stringMatching(/^csl_/),
    object: 'customer_setup_link',
    customer_id: customer.id,
    status: 'active',
    token_last4: setup_url.slice(-4),
    expires_at: new Date(Date.parse(link.created_at) + 168 * 3_600_000).toISOString(),
    consumed_at: null,
    success_redirect_url: 'https://shop.example/ok',
    failure_redirect_url: null,
    created_at: expect.any(String),
  })
  expect((await eventsOf(it.app, customer.organization)).at(-1)).toEqual({
    type: 'customer.setup_link.created',
    data: { customer_id: customer.id, setup_link: link },
    line: customer.id,
    phone: undefined,
  })
  expect((await customer.list()).data).toEqual([link])
})

test('the token stands nowhere: not in the row, not in an event, not in the stored answer, which repeats it', async () => {
  const customer = await customerOf()
  const idempotency = { key: newId('req'), fingerprint: 'same' }
  const once = () =>
    ask(it.app, createSetupLink, {}, { params: { id: customer.id }, caller: { ...customer.caller, idempotency } })
  const { setup_url } = await once()
  expect(await once()).toMatchObject({ setup_url })
  const token = tokenOf(setup_url)
  for (const table of ['setup_links', 'outbox', 'idempotency.keys']) {
    const rows = await it.app.sql<{ text: string }[]>`select t::text as text from ${it.app.sql(table)} t`
    const all = rows.map(({ text }) => text).join()
    expect(rows).not.toEqual([])
    expect(all).not.toContain(token)
    // The columns of bytes are shown in hex.
    expect(all).not.toContain(Buffer.from(token).toString('hex'))
  }
})

test('expiry is chosen in hours; a redirect URL stays as given, or is written as a URI', async () => {
  const customer = await customerOf()
  const link = await customer.create({
    expires_in_hours: 1,
    success_redirect_url: 'http://shop.example?a={1}&b=ä',
    failure_redirect_url: 'HTTPS://Shop.example',
  })
  expect(Date.parse(link.expires_at) - Date.parse(link.created_at)).toBe(3_600_000)
  expect(link.success_redirect_url).toBe('http://shop.example/?a=%7B1%7D&b=%C3%A4')
  expect(link.failure_redirect_url).toBe('HTTPS://Shop.example')
})

test('an active link takes new redirect URLs, an inactive one neither these nor a revocation', async () => {
  const customer = await customerOf()
  const [revoked, expired] = [await customer.create(), await customer.create()]
  const { setup_url: _, ...other } = await customer.create()
  const url = 'https://shop.example/ok'
  expect(await customer.update(revoked.id, { success_redirect_url: url })).toMatchObject({
    success_redirect_url: url,
    failure_redirect_url: null,
  })
  expect(await customer.update(revoked.id, { success_redirect_url: null, failure_redirect_url: url })).toMatchObject({
    success_redirect_url: null,
    failure_redirect_url: url,
  })
  const both = { success_redirect_url: url, failure_redirect_url: url }
  expect(await customer.update(revoked.id, { success_redirect_url: url })).toMatchObject(both)
  expect(await customer.update(revoked.id, {})).toMatchObject(both)
  expect(await customer.revoke(revoked.id)).toMatchObject({ id: revoked.id, status: 'revoked' })
  await customer.expire(expired.id)
  for (const { id } of [revoked, expired]) {
    const inactive = { failure: 'setup_link_inactive' }
    await expect(customer.revoke(id)).rejects.toMatchObject(inactive)
    await expect(customer.update(id, { success_redirect_url: null })).rejects.toMatchObject(inactive)
  }
  expect((await customer.list({ status: 'active' })).data).toEqual([other])
  const events = await eventsOf(it.app, customer.organization)
  expect(events.filter(({ type }) => type.startsWith('customer.setup_link'))).toHaveLength(3)
})

test('an expired link says so wherever it is read, without anybody noting it', async () => {
  const customer = await customerOf()
  const { id, setup_url } = await customer.create()
  await customer.expire(id)
  expect((await customer.list({ status: 'expired' })).data).toMatchObject([{ id, status: 'expired' }])
  expect((await customer.list({ status: 'active' })).data).toEqual([])
  expect(await findLinkByToken(it.app.sql, tokenOf(setup_url))).toMatchObject({
    status: 'expired',
    refusal: 'setup_link_inactive',
  })
})

test('a suspended customer gets no link; archiving revokes those that are active, and leaves the expired', async () => {
  const customer = await customerOf()
  const [active, expired] = [await customer.create(), await customer.create()]
  await customer.expire(expired.id)
  const asOwner = { params: { id: customer.id }, caller: customer.caller }
  await ask(it.app, updateCustomer, { status: 'suspended' }, asOwner)
  await expect(customer.create()).rejects.toMatchObject({ failure: 'customer_suspended' })
  expect(await findLinkByToken(it.app.sql, tokenOf(active.setup_url))).toMatchObject({ refusal: 'customer_suspended' })
  await ask(it.app, archiveCustomer, undefined, asOwner)
  await expect(customer.create()).rejects.toMatchObject({ failure: 'customer_suspended' })
  expect((await customer.list()).data.map(({ status }) => status)).toEqual(['expired', 'revoked'])
  const events = await eventsOf(it.app, customer.organization)
  expect(events.at(-1)?.type).toBe('customer.archived')
})

/** More links of its customer, as they are made: their ids come after that one's. */
const addLinksLike = (sql: Sql | TransactionSql, id: string, count: number) => sql`
  insert into setup_links (organization_id, id, customer_id, token_hash, token_last4, status, expires_at, created_at)
  select organization_id, id || n, customer_id, token_hash || n, token_last4, status, expires_at, created_at
  from setup_links, generate_series(1, ${count}::int) n where id = ${id}
`

test('an archive waits for no link, however many there are; they stay revoked, or expired, when the customer is restored', async () => {
  const customer = await customerOf()
  const [active, expired, held] = [await customer.create(), await customer.create(), await customer.create()]
  await customer.expire(expired.id)
  await addLinksLike(it.app.sql, active.id, 2_010)
  await it.app.sql.begin(async (tx) => {
    await tx`select from setup_links where id = ${held.id} for update`
    await ask(it.app, archiveCustomer, undefined, { params: { id: customer.id }, caller: customer.caller })
  })
  await expect(customer.update(active.id, { success_redirect_url: null })).rejects.toMatchObject({
    failure: 'setup_link_inactive',
  })
  expect(await findLinkByToken(it.app.sql, tokenOf(held.setup_url))).toMatchObject({ refusal: 'setup_link_inactive' })
  const statuses = async () => [
    (await customer.list({ status: 'active' })).data.length,
    (await customer.list({ status: 'expired' })).data.map(({ id }) => id),
    (await customer.list({ status: 'revoked', limit: '1' })).data.map(({ id }) => id),
  ]
  const revoked = [0, [expired.id], [held.id]]
  expect(await statuses()).toEqual(revoked)
  await it.app.sql`update setup_links set expires_at = now() where id = ${held.id}`
  expect(await statuses()).toEqual(revoked)
  await ask(it.app, restoreCustomer, { customer_id: customer.id })
  expect(await statuses()).toEqual(revoked)
  const anew = await customer.create()
  expect((await customer.list({ status: 'active' })).data).toMatchObject([{ id: anew.id }])
})

test('an archive and its end leave the links of the organization’s other customers active', async () => {
  const customer = await customerOf()
  const other = await customerOf(customer.organization)
  const { id } = await other.create()
  await ask(it.app, archiveCustomer, undefined, { params: { id: customer.id }, caller: customer.caller })
  await ask(it.app, restoreCustomer, { customer_id: customer.id })
  expect((await other.list({ status: 'active' })).data).toMatchObject([{ id }])
})

test('a link that was made while its customer was archived, restored and archived again stays revoked, however many there are', async () => {
  const customer = await customerOf()
  const first = await customer.create()
  await addLinksLike(it.app.sql, first.id, 2_010)
  await ask(it.app, archiveCustomer, undefined, { params: { id: customer.id }, caller: customer.caller })
  const { restoring } = await it.app.sql.begin(async (tx) => {
    await tx`select id from organizations where id = ${customer.organization} for no key update`
    const restoring = ask(it.app, restoreCustomer, { customer_id: customer.id })
    await untilWaitedFor(it.app.sql, tx)
    // Meanwhile another restoration ended, a link was made, and the customer archived.
    const last = { ...first, id: newId('csl') }
    await tx`
      insert into setup_links (organization_id, id, customer_id, token_hash, token_last4, status, expires_at, created_at)
      values (${customer.organization}, ${last.id}, ${customer.id}, ${last.id}, 'last', 'active', ${last.expires_at}, clock_timestamp())
    `
    await tx`update customers set archived_at = clock_timestamp() where id = ${customer.id}`
    return { restoring }
  })
  await restoring
  expect((await customer.list({ status: 'active' })).data).toEqual([])
})

test('a link that waited for the archive of its customer is refused', async () => {
  const customer = await customerOf()
  const { promise: held, resolve: release } = Promise.withResolvers<void>()
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>()
  const archiving = it.app.sql.begin(async (tx) => {
    await tx`update customers set status = 'archived', archived_at = now() where id = ${customer.id}`
    begin()
    await held
  })
  await begun
  const refused = expect(customer.create()).rejects.toMatchObject({ failure: 'customer_suspended' })
  await untilSomebodyWaits(it.app.sql)
  release()
  await Promise.all([archiving, refused])
  expect((await customer.list()).data).toEqual([])
})

test('a change of a link that waited for its revocation is refused', async () => {
  const customer = await customerOf()
  const { id } = await customer.create()
  const { updating } = await it.app.sql.begin(async (tx) => {
    await tx`update setup_links set status = 'revoked' where id = ${id}`
    const updating = customer
      .update(id, { success_redirect_url: 'https://shop.example/ok' })
      .catch((err: unknown) => err)
    await untilSomebodyWaits(it.app.sql)
    return { updating }
  })
  expect(await updating).toMatchObject({ failure: 'setup_link_inactive' })
  expect((await customer.list()).data).toMatchObject([{ id, status: 'revoked' }])
})

test('a lapsed subscription and a missing entitlement stop changes, and the link itself', async () => {
  const customer = await customerOf()
  const { id, setup_url } = await customer.create()
  const standings: Array<[Standing, string]> = [
    [{ subscription: 'lapsed' }, 'subscription_lapsed'],
    [{ subscription: 'active', features: ['webhooks'] }, 'feature_not_entitled'],
  ]
  for (const [standing, failure] of standings) {
    await ask(it.app, updateOrganization, { organization_id: customer.organization, ...standing })
    await expect(customer.create()).rejects.toMatchObject({ failure })
    await expect(customer.revoke(id)).rejects.toMatchObject({ failure })
    await expect(customer.update(id, { success_redirect_url: null })).rejects.toMatchObject({ failure })
    expect(await findLinkByToken(it.app.sql, tokenOf(setup_url))).toMatchObject({ refusal: failure })
  }
  expect((await customer.list()).data).toHaveLength(1)
})

test("another customer's link, another organization's and an unknown one are not found", async () => {
  const customer = await customerOf()
  const sibling = await customerOf(customer.organization)
  const foreign = await customerOf()
  const absent = { failure: 'resource_not_found', param: undefined }
  for (const id of [(await sibling.create()).id, (await foreign.create()).id, newId('csl')]) {
    await expect(customer.revoke(id)).rejects.toMatchObject(absent)
    await expect(customer.update(id, { success_redirect_url: null })).rejects.toMatchObject(absent)
  }
  const asForeigner = { params: { id: customer.id }, caller: foreign.caller }
  await expect(ask(it.app, listSetupLinks, undefined, asForeigner)).rejects.toMatchObject(absent)
  await expect(ask(it.app, createSetupLink, {}, asForeigner)).rejects.toMatchObject(absent)
})

test('a token finds its link with the names of whose it is; a wrong one finds nothing', async () => {
  const customer = await customerOf()
  const { id, setup_url } = await customer.create()
  const token = tokenOf(setup_url)
  expect(await findLinkByToken(it.app.sql, token)).toMatchObject({
    id,
    status: 'active',
    customerId: customer.id,
    customerName: 'Bakery',
    organizationId: customer.organization,
    organizationName: 'Acme',
    refusal: null,
  })
  for (const wrong of ['', `${token}A`, hashOf(token)]) expect(await findLinkByToken(it.app.sql, wrong)).toBeNull()
})
