import { beforeAll, expect, inject, test } from 'vitest'
import { admin } from './admin.ts'
import { type Answer, type Json, newPhone } from './client.ts'
import { newTenant, type Tenant } from './tenant.ts'

const stack = inject('stack')
let tenant: Tenant
let links: string
beforeAll(async () => {
  tenant = await newTenant()
  links = await linksOfNewCustomer()
})

async function linksOfNewCustomer(of = tenant): Promise<string> {
  const { id } = await of.ok('POST', '/customers', { name: 'Bakery' })
  return `/customers/${id}/setup_links`
}

const refused = ({ status, body }: Answer) => [status, body.error?.type, body.error?.code, body.error?.param]
const inactive = [409, 'conflict', 'setup_link_inactive', undefined]

test('a link is created with its URL, which no other answer holds', async () => {
  const path = await linksOfNewCustomer()
  const body = { success_redirect_url: 'https://shop.example/ok', expires_in_hours: 720 }
  const created = await tenant.call('POST', path, body)
  expect(created).toMatchObject({ status: 201, body: { data: { status: 'active', ...asShown(body) } } })
  const { setup_url, ...link } = created.body.data
  expect(setup_url).toMatch(new RegExp(`^${new URL(stack.base_url).origin}/setup/[\\w-]{43}$`))
  expect(setup_url.endsWith(link.token_last4)).toBe(true)
  expect(Date.parse(link.expires_at) - Date.parse(link.created_at)).toBe(720 * 3_600_000)
  expect(await tenant.ok('GET', path)).toEqual([link])
  const updated = await tenant.ok('PATCH', `${path}/${link.id}`, { failure_redirect_url: 'http://shop.example/no' })
  expect(updated).toEqual({ ...link, failure_redirect_url: 'http://shop.example/no' })
})

const asShown = ({ success_redirect_url }: { success_redirect_url: string }) => ({
  success_redirect_url,
  failure_redirect_url: null,
  consumed_at: null,
  object: 'customer_setup_link',
})

test('a repeated request is answered with the same URL', async () => {
  const headers = { 'idempotency-key': `link-${newPhone()}` }
  const first = await tenant.call('POST', links, {}, headers)
  const again = await tenant.call('POST', links, {}, headers)
  expect(again).toMatchObject({ status: 201, body: first.body, headers: { 'idempotent-replayed': 'true' } })
  const other = await tenant.call('POST', links, { expires_in_hours: 1 }, headers)
  expect(refused(other)).toEqual([422, 'invalid_request_error', 'idempotency_key_reuse', undefined])
})

test.each([
  ['no hours', { expires_in_hours: 0 }, 'expires_in_hours'],
  ['too many hours', { expires_in_hours: 721 }, 'expires_in_hours'],
  ['half an hour', { expires_in_hours: 0.5 }, 'expires_in_hours'],
  ['a script', { success_redirect_url: 'javascript:alert(1)' }, 'success_redirect_url'],
  ['another scheme', { failure_redirect_url: 'ftp://shop.example' }, 'failure_redirect_url'],
  ['no host', { success_redirect_url: 'https://' }, 'success_redirect_url'],
  ['a path', { success_redirect_url: '/ok' }, 'success_redirect_url'],
  ['a long URL', { success_redirect_url: `https://shop.example/${'x'.repeat(2048)}` }, 'success_redirect_url'],
])('a link with %s is refused', async (_what, body, param) => {
  const expected = [400, 'invalid_request_error', 'invalid_field_value', param]
  expect(refused(await tenant.call('POST', links, body))).toEqual(expected)
})

test('a change names at least one URL', async () => {
  const { id } = await tenant.ok('POST', links, {})
  const expected = [400, 'invalid_request_error', 'invalid_field_value', 'success_redirect_url']
  expect(refused(await tenant.call('PATCH', `${links}/${id}`, {}))).toEqual(expected)
  expect(await tenant.ok('PATCH', `${links}/${id}`, { success_redirect_url: null })).toMatchObject({ id })
})

test('a revoked link takes no change and no second revocation', async () => {
  const { id } = await tenant.ok('POST', links, {})
  expect(await tenant.ok('DELETE', `${links}/${id}`)).toMatchObject({ id, status: 'revoked' })
  expect(refused(await tenant.call('DELETE', `${links}/${id}`))).toEqual(inactive)
  expect(refused(await tenant.call('PATCH', `${links}/${id}`, { success_redirect_url: null }))).toEqual(inactive)
  expect(await tenant.ok('GET', `${links}?status=revoked`)).toMatchObject([{ id }])
})

test('a suspended or archived customer gets no link; archiving revokes its links', async () => {
  const path = await linksOfNewCustomer()
  const customer = path.replace('/setup_links', '')
  const { id } = await tenant.ok('POST', path, {})
  const suspended = [422, 'invalid_request_error', 'customer_suspended', undefined]
  await tenant.ok('PATCH', customer, { status: 'suspended' })
  expect(refused(await tenant.call('POST', path, {}))).toEqual(suspended)
  await tenant.ok('DELETE', customer)
  expect(refused(await tenant.call('POST', path, {}))).toEqual(suspended)
  expect(await tenant.ok('GET', path)).toMatchObject([{ id, status: 'revoked' }])
})

test('the list pages newest first, each link once, while others are created', async () => {
  const path = await linksOfNewCustomer()
  for (let n = 0; n < 7; n++) await tenant.ok('POST', path, {})
  const before = await tenant.ok('GET', `${path}?limit=100`)
  const adding = Promise.all(Array.from({ length: 5 }, () => tenant.ok('POST', path, {})))
  const ids: string[] = []
  let next = ''
  do {
    const { body } = await tenant.call('GET', `${path}?limit=2${next}`)
    ids.push(...body.data.map(({ id }: Json) => id))
    next = body.next_cursor === null ? '' : `&cursor=${body.next_cursor}`
  } while (next !== '')
  await adding
  expect(new Set(ids).size).toBe(ids.length)
  expect(ids).toEqual(ids.toSorted((a, b) => (a < b ? 1 : -1)))
  expect(ids).toEqual(expect.arrayContaining(before.map(({ id }: Json) => id)))
  const { body } = await tenant.call('GET', `${path}?limit=2`)
  const ofAnother = await tenant.call('GET', `${await linksOfNewCustomer()}?limit=2&cursor=${body.next_cursor}`)
  expect(refused(ofAnother)).toEqual([400, 'invalid_request_error', 'invalid_cursor', 'cursor'])
  const gone = await tenant.call('GET', `${path}?status=gone`)
  expect(refused(gone)).toEqual([400, 'invalid_request_error', 'invalid_field_value', 'status'])
})

test('another organization sees and changes nothing of it', async () => {
  const stranger = await newTenant()
  const { id } = await tenant.ok('POST', links, {})
  const own = await linksOfNewCustomer(stranger)
  const absent = [404, 'not_found', 'resource_not_found', undefined]
  for (const answer of [
    await stranger.call('GET', links),
    await stranger.call('POST', links, {}),
    await stranger.call('PATCH', `${links}/${id}`, { success_redirect_url: null }),
    await stranger.call('DELETE', `${links}/${id}`),
    await stranger.call('DELETE', `${own}/${id}`),
    await stranger.call('DELETE', `${own}/nonsense`),
  ]) {
    expect(refused(answer)).toEqual(absent)
  }
})

test('a lapsed subscription and a missing entitlement stop changes at once, and no reading', async () => {
  const own = await newTenant()
  const path = await linksOfNewCustomer(own)
  const { id } = await own.ok('POST', path, {})
  const changes = async () => [
    await own.call('POST', path, {}),
    await own.call('PATCH', `${path}/${id}`, { success_redirect_url: null }),
    await own.call('DELETE', `${path}/${id}`),
  ]
  await admin('organization', 'update', own.id, '--subscription', 'lapsed')
  for (const answer of await changes()) {
    expect(refused(answer)).toEqual([403, 'permission_error', 'subscription_inactive', undefined])
  }
  await admin('organization', 'update', own.id, '--subscription', 'active', '--features', 'webhooks')
  for (const answer of await changes()) {
    expect(refused(answer)).toEqual([403, 'permission_error', 'feature_not_entitled', undefined])
  }
  expect(await own.ok('GET', path)).toMatchObject([{ id, status: 'active' }])
})
