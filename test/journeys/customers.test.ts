import { request } from 'undici'
import { beforeAll, describe, expect, inject, test } from 'vitest'
import { admin } from './admin.ts'
import { type Answer, client, type Json, newPhone, until } from './client.ts'
import { startReceiver } from './receiver.ts'
import { newTenant, type Tenant } from './tenant.ts'

const { api, control } = client()
const stack = inject('stack')
let tenant: Tenant
beforeAll(async () => {
  tenant = await newTenant()
})

const newCustomer = (name = 'Bakery', of = tenant): Promise<Json> => of.ok('POST', '/customers', { name })

const idOf = ({ id }: Json): string => id

const refused = ({ status, body }: Answer) => [status, body.error?.type, body.error?.code, body.error?.param]

test('a customer lives from its creation to its archive, and comes back', async () => {
  const created = await tenant.call('POST', '/customers', { name: 'Bruno', email: 'b@b.example', metadata: { a: 1 } })
  expect(created).toMatchObject({
    status: 201,
    body: { data: { object: 'customer', status: 'pending', name: 'Bruno', archived_at: null, metadata: { a: 1 } } },
  })
  const { id } = created.body.data
  expect(await tenant.ok('GET', `/customers/${id}`)).toEqual({ ...created.body.data, accounts: [] })
  const suspended = await tenant.ok('PATCH', `/customers/${id}`, { status: 'suspended', email: null })
  expect(suspended).toMatchObject({ status: 'suspended', email: null, name: 'Bruno' })
  const archived = await tenant.ok('DELETE', `/customers/${id}`)
  expect(archived).toMatchObject({ id, status: 'archived', archived_at: expect.any(String) })
  expect(await tenant.ok('DELETE', `/customers/${id}`)).toEqual(archived)
  expect(refused(await tenant.call('PATCH', `/customers/${id}`, { name: 'x' }))).toEqual([
    409,
    'conflict',
    'customer_archived',
    undefined,
  ])
  expect(await admin('customer', 'restore', id)).toMatchObject({ id, status: 'pending' })
  expect(await tenant.ok('PATCH', `/customers/${id}`, { name: 'Bruno & Son' })).toMatchObject({ name: 'Bruno & Son' })
})

const long = (length: number) => 'x'.repeat(length)

test.each([
  ['no name', {}, 'name'],
  ['an empty name', { name: '' }, 'name'],
  ['a long name', { name: long(201) }, 'name'],
  ['no address', { name: 'x', email: 'nobody' }, 'email'],
  ['a long address', { name: 'x', email: `${long(250)}@b.example` }, 'email'],
  ['metadata that is no object', { name: 'x', metadata: [1] }, 'metadata'],
  ['65 keys', { name: 'x', metadata: Object.fromEntries(Array.from({ length: 65 }, (_, n) => [n, 1])) }, 'metadata'],
  ['over 16 KiB', { name: 'x', metadata: { a: long(16_384) } }, 'metadata'],
  ['a malformed team', { name: 'x', team_id: 'nonsense' }, 'team_id'],
  ['an unknown team', { name: 'x', team_id: 'team_01JQ8Z6V0A7XJ2N5T9WQ3RBKCF' }, 'team_id'],
])('a new customer with %s is refused', async (_what, body, param) => {
  expect(refused(await tenant.call('POST', '/customers', body))).toEqual([
    400,
    'invalid_request_error',
    'invalid_field_value',
    param,
  ])
})

test('the greatest values are taken', async () => {
  const metadata = Object.fromEntries(Array.from({ length: 64 }, (_, n) => [`key${n}`, long(200)]))
  const body = { name: '𝒳'.repeat(200), metadata }
  expect(await tenant.ok('POST', '/customers', body)).toMatchObject(body)
})

test.each([['pending'], ['archived'], ['gone']])('a PATCH to status %s is refused', async (status) => {
  const { id } = await newCustomer()
  const answer = await tenant.call('PATCH', `/customers/${id}`, { status })
  expect(refused(answer)).toEqual([400, 'invalid_request_error', 'invalid_field_value', 'status'])
})

test('with several teams a customer needs one', async () => {
  const several = await newTenant()
  const team = await admin('team', 'create', '--organization', several.id, '--name', 'Second')
  const answer = await several.call('POST', '/customers', { name: 'x' })
  expect(refused(answer)).toEqual([400, 'invalid_request_error', 'invalid_field_value', 'team_id'])
  expect(await several.ok('POST', '/customers', { name: 'x', team_id: team.id })).toMatchObject({ team_id: team.id })
  expect(await several.ok('GET', `/customers?team_id=${team.id}`)).toHaveLength(1)
})

test('the same key makes one customer', async () => {
  const headers = { 'idempotency-key': `customer-${newPhone()}` }
  const first = await tenant.call('POST', '/customers', { name: 'Once' }, headers)
  const again = await tenant.call('POST', '/customers', { name: 'Once' }, headers)
  expect(again).toMatchObject({ status: 201, body: first.body, headers: { 'idempotent-replayed': 'true' } })
  const other = await tenant.call('POST', '/customers', { name: 'Other' }, headers)
  expect(refused(other)).toEqual([422, 'invalid_request_error', 'idempotency_key_reuse', undefined])
})

test('the list pages newest first, each customer once, while others are created', async () => {
  const own = await newTenant()
  for (let n = 0; n < 9; n++) await newCustomer(`before ${n}`, own)
  const before = await own.ok('GET', '/customers?limit=100')
  const adding = Promise.all(Array.from({ length: 6 }, (_, n) => newCustomer(`meanwhile ${n}`, own)))
  const ids: string[] = []
  for (let cursor = ''; ;) {
    const { body } = await own.call('GET', `/customers?limit=2${cursor && `&cursor=${cursor}`}`)
    ids.push(...body.data.map(idOf))
    expect(body.has_more).toBe(body.next_cursor !== null)
    if (body.next_cursor === null) break
    cursor = body.next_cursor
  }
  await adding
  expect(new Set(ids).size).toBe(ids.length)
  expect(ids).toEqual(ids.toSorted((a, b) => (a < b ? 1 : -1)))
  expect(ids).toEqual(expect.arrayContaining(before.map(idOf)))
  const { body } = await own.call('GET', '/customers?limit=2')
  const elsewhere = await own.call('GET', `/customers?limit=2&status=pending&cursor=${body.next_cursor}`)
  expect(refused(elsewhere)).toEqual([400, 'invalid_request_error', 'invalid_cursor', 'cursor'])
  for (const [query, param] of [
    ['status=gone', 'status'],
    ['team_id=nonsense', 'team_id'],
    ['search=', 'search'],
  ]) {
    expect(refused(await own.call('GET', `/customers?${query}`))).toEqual([
      400,
      'invalid_request_error',
      'invalid_field_value',
      param,
    ])
  }
  expect(await own.ok('GET', '/customers?search=MEANWHILE%203')).toMatchObject([{ name: 'meanwhile 3' }])
})

test('another organization sees and changes nothing of it', async () => {
  const stranger = await newTenant()
  const { id } = await newCustomer()
  const unknown = 'cus_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD'
  const bodies = new Set<string>()
  for (const path of [`/customers/${id}`, `/customers/${unknown}`, '/customers/nonsense']) {
    for (const answer of [
      await stranger.call('GET', path),
      await stranger.call('PATCH', path, { name: 'x' }),
      await stranger.call('DELETE', path),
      await stranger.call('DELETE', `${path}/chat_accounts/${stack.phone_number_id}`),
    ]) {
      const { request_id: _, ...error } = answer.body.error
      bodies.add(JSON.stringify([answer.status, error]))
    }
  }
  expect([...bodies]).toEqual([expect.stringContaining('resource_not_found')])
  expect(await stranger.ok('GET', '/customers')).toEqual([])
  expect(await tenant.ok('GET', `/customers/${id}`)).toMatchObject({ status: 'pending' })
})

test('what a lapsed or unentitled organization cannot do ends at once, and reading goes on', async () => {
  const own = await newTenant()
  const { id } = await newCustomer('x', own)
  const phone = await own.connect('--customer', id)
  const changes = () =>
    Promise.all([
      own.call('POST', '/customers', { name: 'x' }),
      own.call('PATCH', `/customers/${id}`, { name: 'y' }),
      own.call('DELETE', `/customers/${id}/chat_accounts/${phone}`),
      own.call('DELETE', `/customers/${id}`),
    ])
  await admin('organization', 'update', own.id, '--subscription', 'lapsed')
  for (const answer of await changes()) {
    expect(refused(answer)).toEqual([403, 'permission_error', 'subscription_inactive', undefined])
  }
  await admin('organization', 'update', own.id, '--subscription', 'active', '--features', 'messaging')
  for (const answer of await changes()) {
    expect(refused(answer)).toEqual([403, 'permission_error', 'feature_not_entitled', undefined])
  }
  expect(await own.ok('GET', `/customers/${id}`)).toMatchObject({ name: 'x', accounts: [{ phone_number_id: phone }] })
  expect(await own.ok('GET', '/customers')).toHaveLength(1)
})

test('a number belongs to its customer, follows its name, and can be detached under both names of the path', async () => {
  const { id } = await newCustomer('First name')
  const phone = await tenant.connect('--customer', id)
  expect(await tenant.ok('GET', `/accounts?customer_id=${id}`)).toMatchObject([
    { phone_number_id: phone, status: 'connected', customer_id: id },
  ])
  expect(await tenant.ok('GET', `/customers/${id}`)).toMatchObject({
    status: 'active',
    accounts: [{ phone_number_id: phone }],
  })
  const contact = await openContact(tenant, phone)
  expect(contact.chat_account).toMatchObject({ customer: { id, name: 'First name' } })
  await tenant.ok('PATCH', `/customers/${id}`, { name: 'Second name' })
  const renamed = await tenant.ok('GET', `/${phone}/contacts/${contact.id}`)
  expect(renamed.chat_account).toMatchObject({ customer: { id, name: 'Second name' } })
  for (const word of ['chat_accounts', 'whatsapp_accounts']) {
    expect(await tenant.ok('DELETE', `/customers/${id}/${word}/${phone}`)).toEqual({
      customer_id: id,
      phone_number_id: phone,
      removed: true,
    })
  }
  expect(await tenant.ok('GET', '/accounts?status=all')).toMatchObject([
    { phone_number_id: phone, status: 'disconnected', customer_id: id },
  ])
  const send = { messaging_product: 'chat', to: contact.phone_number, type: 'text', text: { body: 'x' } }
  expect(refused(await tenant.call('POST', `/${phone}/messages`, send))).toEqual([
    422,
    'invalid_request_error',
    'account_not_connected',
    undefined,
  ])
  expect(await tenant.ok('GET', `/${phone}/contacts/${contact.id}`)).toMatchObject({ id: contact.id })
})

async function openContact(of: Tenant, phone: string) {
  const from = newPhone()
  await of.openWindow(phone, from)
  const [contact] = await of.ok('GET', `/${phone}/contacts?phone_number=${encodeURIComponent(from)}`)
  return contact as Json
}

describe.concurrent('a suspension', () => {
  test('with 25 queued sends fails each of them, and none reaches the platform any more', async () => {
    const { phone, id, people, suspend } = await talking(5)
    // As many as there are conversations: the first of each is in its call, and whatever came behind it would be with the platform at once.
    await delayCalls(phone, { ms: 4_000, times: people.length })
    const first: Json[] = await Promise.all(people.map((to) => sendText(phone, to, 'first')))
    await until(async () => expect(await isDelayed(phone)).toBe(false))
    const texts = Array.from({ length: 25 }, (_, n) => `${n}`)
    const queued: Json[] = await Promise.all(texts.map((text, n) => sendText(phone, people[n % 5] ?? '', text)))
    expect(await suspend()).toMatchObject({ status: 'suspended' })
    for (const gateway of [0, 1, 0, 1]) {
      const late = await api('POST', `/${phone}/messages`, { key: tenant.key, gateway, body: text(people[0], 'late') })
      expect(refused(late)).toEqual([422, 'invalid_request_error', 'customer_suspended', undefined])
    }
    await until(async () => {
      const failed = await tenant.ok('GET', `/${phone}/messages?status=failed&limit=100`)
      expect(failed).toHaveLength(25)
      for (const message of failed) {
        expect(message.error).toMatchObject({ code: 'customer_suspended', provider_code: null })
      }
      expect(new Set(failed.map(idOf))).toEqual(new Set(queued.map(idOf)))
    })
    await until(async () => expect(await sentFrom(phone)).toHaveLength(5))

    await tenant.ok('PATCH', `/customers/${id}`, { status: 'active' })
    // In each conversation they come behind all that was queued in it.
    const resumed: Json[] = await Promise.all(people.map((to) => sendText(phone, to, 'again')))
    await until(async () => expect(await sentFrom(phone)).toEqual(expect.arrayContaining(resumed.map(idOf))))
    expect((await sentFrom(phone)).toSorted()).toEqual([...first, ...resumed].map(idOf).toSorted())
  }, 60_000)

  test('while 80 sends go out lets none of them reach the platform after it was answered', async () => {
    const { phone, people, suspend } = await talking(8)
    await delayCalls(phone, { ms: 1_500, times: 1_000 })
    const sends = Array.from({ length: 80 }, (_, n) =>
      tenant.call('POST', `/${phone}/messages`, text(people[n % people.length], `${n}`)),
    )
    await until(async () => expect((await sentFrom(phone)).length).toBeGreaterThan(5))
    // One of each conversation is with the platform; of those that are accepted some wait behind it.
    const pending = () => tenant.ok('GET', `/${phone}/messages?status=pending&limit=100`)
    await until(async () => expect((await pending()).length).toBeGreaterThan(2 * people.length))
    await suspend()
    const suspendedAt = Date.now()
    const answers = await Promise.all(sends)
    const accepted = answers.filter(({ status }) => status === 200).map(({ body }) => idOf(body.data))
    for (const answer of answers.filter(({ status }) => status !== 200)) {
      expect(refused(answer)).toEqual([422, 'invalid_request_error', 'customer_suspended', undefined])
    }
    await until(async () => expect(await tenant.ok('GET', `/${phone}/messages?status=pending`)).toEqual([]))
    const sent = await callsOf(phone)
    expect(sent.filter(({ at }) => Date.parse(at) > suspendedAt)).toEqual([])
    expect(sent.length).toBeLessThan(accepted.length)
    for (const { body } of sent) expect(accepted).toContain(body.biz_opaque_callback_data)
  }, 60_000)
})

/** A customer with a number that so many people have written to. */
async function talking(count: number) {
  const { id } = await newCustomer()
  const phone = await tenant.connect('--customer', id)
  const people = Array.from({ length: count }, newPhone)
  await Promise.all(people.map((from) => tenant.openWindow(phone, from)))
  return { id, phone, people, suspend: () => tenant.ok('PATCH', `/customers/${id}`, { status: 'suspended' }) }
}

const text = (to: string | undefined, body: string) => ({
  messaging_product: 'chat',
  to,
  type: 'text',
  text: { body },
})

const sendText = (phone: string, to: string, body: string): Promise<Json> =>
  tenant.ok('POST', `/${phone}/messages`, text(to, body))

const delayCalls = (phone: string, { ms, times }: { ms: number; times: number }) =>
  control('/control/faults', { match: { path: `${phone}/messages` }, fault: { kind: 'delay', ms }, times })

/** Whether calls of that number still meet a delay. */
async function isDelayed(phone: string) {
  const { data: laid }: Json = await control('/control/faults', undefined, 'GET')
  return laid.some(({ match }: Json) => match.path === `${phone}/messages`)
}

async function callsOf(phone: string) {
  const answer = await request(`${stack.simulator_url}/control/sent?phone_number_id=${phone}`)
  const { data } = (await answer.body.json()) as { data: Json[] }
  return data
}

const sentFrom = async (phone: string): Promise<string[]> =>
  (await callsOf(phone)).map(({ body }) => body.biz_opaque_callback_data)

test('events of a customer arrive in their order, each with exactly its fields, though the receiver is slow', async () => {
  const own = await newTenant()
  const receiver = await startReceiver()
  receiver.respondWith((response) => setTimeout(() => response.end('ok'), Math.random() * 60))
  const events = ['customer.created', 'customer.updated', 'customer.archived', 'customer.setup_link.created']
  await own.ok('POST', '/webhook_subscriptions', { url: receiver.url, events })
  const lives = await Promise.all(
    Array.from({ length: 5 }, async () => {
      const { email: _, ...customer } = await newCustomer('x', own)
      const { setup_url: __, ...link } = await own.ok('POST', `/customers/${customer.id}/setup_links`, {})
      const { email: ___, ...updated } = await own.ok('PATCH', `/customers/${customer.id}`, { name: 'y' })
      await own.ok('PATCH', `/customers/${customer.id}`, { name: 'y' })
      const { email: ____, ...archived } = await own.ok('DELETE', `/customers/${customer.id}`)
      await own.ok('DELETE', `/customers/${customer.id}`)
      return {
        id: customer.id as string,
        told: [
          ['customer.created', { customer }],
          ['customer.setup_link.created', { customer_id: customer.id, setup_link: link }],
          ['customer.updated', { customer: updated }],
          ['customer.archived', { customer: archived }],
        ],
      }
    }),
  )
  await until(() => expect(receiver.deliveries).toHaveLength(20))
  for (const { id, told } of lives) {
    const got = receiver.deliveries
      .map(({ body }) => body)
      .filter(({ data }) => (data.customer?.id ?? data.customer_id) === id)
    expect(got.map(({ type, data }) => [type, data])).toEqual(told)
    for (const event of got) expect(Object.keys(event).toSorted()).toEqual(['created_at', 'data', 'id', 'type'])
  }
  receiver.close()
})
