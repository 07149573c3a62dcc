import Stripe from 'stripe'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { admin } from './admin.ts'
import { client, type Json, newPhone, until } from './client.ts'
import { type Receiver, startReceiver } from './receiver.ts'

const { api, phone, inbound } = client()
let receiver: Receiver
let id: string
let secret: string
let strangerKey: string

beforeAll(async () => {
  receiver = await startReceiver()
  const { id: organization } = await admin('organization', 'create', '--name', 'Stranger')
  strangerKey = (await admin('key', 'create', '--organization', organization, '--label', 'test')).key
})
afterAll(() => receiver.close())
beforeEach(async () => {
  receiver.deliveries.length = 0
  receiver.respondWith((response) => response.end('ok'))
  const created = await api('POST', '/webhook_subscriptions', {
    body: { url: receiver.url, events: ['message.received'] },
  })
  expect(created.status).toBe(201)
  id = created.body.data.id
  secret = created.body.data.initial_secret
  return async () => void (await api('DELETE', `/webhook_subscriptions/${id}`))
})

const path = (more = '') => `/webhook_subscriptions/${id}${more}`
const patch = (body: object) => api('PATCH', path(), { body })
const of = (eventId: string) => receiver.deliveries.filter(({ headers }) => headers['x-svc-event-id'] === eventId)
const got = (eventId: string) => until(() => expect(of(eventId)).toHaveLength(1))
const disable = () => admin('webhook', 'disable', id)

/** Code that is not ours. */
const isSignedWith = (delivery: Receiver['deliveries'][number] | undefined, key: string) => {
  try {
    new Stripe('sk_test_unused').webhooks.constructEvent(
      delivery?.raw ?? '',
      delivery?.headers['x-svc-signature'] ?? '',
      key,
    )
    return true
  } catch {
    return false
  }
}

test('a subscription is read, changed, paused, resumed and deleted', async () => {
  expect((await api('GET', path())).body.data).toMatchObject({ id, status: 'active', events: ['message.received'] })
  const changed = await patch({ description: 'second', events: ['message.received', 'contact.created'] })
  expect(changed).toMatchObject({ status: 200, body: { data: { description: 'second' } } })
  expect(changed.body.data).not.toHaveProperty('initial_secret')
  expect((await patch({})).body.data).toEqual(changed.body.data)

  expect((await patch({ status: 'paused' })).body.data).toMatchObject({ status: 'paused', disabled_reason: null })
  const held = await inbound(newPhone(), 'while paused')
  await until(async () => {
    const { body } = await api('GET', `/webhook_deliveries?subscription_id=${id}&status=pending`)
    expect(body.data.map(({ event_id }: Json) => event_id)).toContain(held)
  })
  expect(of(held)).toEqual([])
  expect((await patch({ status: 'active' })).body.data).toMatchObject({ status: 'active' })
  await got(held)

  const deleted = await api('DELETE', path())
  expect(deleted).toMatchObject({ status: 200, body: { data: { id, object: 'webhook_subscription', deleted: true } } })
  for (const [method, more] of [['GET'], ['PATCH'], ['DELETE'], ['POST', '/test'], ['POST', '/enable']] as const) {
    const answer = await api(method, path(more), method === 'PATCH' ? { body: {} } : {})
    expect(answer).toMatchObject({ status: 404, body: { error: { code: 'resource_not_found' } } })
  }
})

test('a rotation: both secrets verify during, and the revoked one never after', async () => {
  const added = await api('POST', path('/secrets'))
  expect(added).toMatchObject({
    status: 201,
    body: { data: { object: 'webhook_signing_secret', secret: expect.stringMatching(/^whsec_/), expires_at: null } },
  })
  const newer: string = added.body.data.secret
  const { secrets } = (await api('GET', path())).body.data
  expect(secrets.map((one: Json) => Object.keys(one).toSorted())).toEqual([
    ['created_at', 'expires_at', 'id'],
    ['created_at', 'expires_at', 'id'],
  ])
  const during = await inbound(newPhone(), 'during')
  await got(during)
  expect([secret, newer].map((key) => isSignedWith(of(during)[0], key))).toEqual([true, true])

  const older = secrets.find((one: Json) => one.id !== added.body.data.id)
  expect(await api('DELETE', path(`/secrets/${older.id}`))).toMatchObject({
    status: 200,
    body: { data: { id: older.id, object: 'webhook_signing_secret', deleted: true } },
  })
  for (let n = 0; n < 5; n++) {
    const after = await inbound(newPhone(), 'after')
    await got(after)
    expect([secret, newer].map((key) => isSignedWith(of(after)[0], key))).toEqual([false, true])
  }
  expect((await api('DELETE', path(`/secrets/${older.id}`))).status).toBe(404)
  expect(await api('DELETE', path(`/secrets/${added.body.data.id}`))).toMatchObject({
    status: 409,
    body: { error: { type: 'conflict', code: 'last_secret' } },
  })
})

test('at most five secrets are active, and one that expires is not the last', async () => {
  for (let n = 0; n < 4; n++) {
    expect((await api('POST', path('/secrets'), { body: { expires_in_hours: 1 } })).status).toBe(201)
  }
  expect(await api('POST', path('/secrets'))).toMatchObject({
    status: 409,
    body: { error: { code: 'too_many_secrets' } },
  })
  const { secrets } = (await api('GET', path())).body.data
  const lasting = secrets.find((one: Json) => one.expires_at === null)
  expect(await api('DELETE', path(`/secrets/${lasting.id}`))).toMatchObject({
    status: 409,
    body: { error: { code: 'last_secret' } },
  })
})

test('a repeated key gets the same secret', async () => {
  const headers = { 'idempotency-key': `secret ${id}` }
  const first = await api('POST', path('/secrets'), { headers })
  const second = await api('POST', path('/secrets'), { headers })
  expect(second.body).toEqual(first.body)
  expect(second.headers['idempotent-replayed']).toBe('true')
  expect((await api('GET', path())).body.data.secrets).toHaveLength(2)
})

test('a test event comes to this subscription', async () => {
  const answer = await api('POST', path('/test'))
  expect(answer).toMatchObject({
    status: 202,
    body: { data: { object: 'webhook_delivery', event_type: 'webhook.test', status: 'pending', subscription_id: id } },
  })
  await got(answer.body.data.event_id)
  const [delivery] = of(answer.body.data.event_id)
  expect(delivery?.headers).toMatchObject({ 'x-svc-event': 'webhook.test', 'x-svc-source': 'svc' })
  expect(delivery?.body).toMatchObject({ type: 'webhook.test', data: { subscription: { id, url: receiver.url } } })
  expect(isSignedWith(delivery, secret)).toBe(true)
})

test('a disabled one refuses every change until it is enabled, and another one is told', async () => {
  const witness = await startReceiver()
  const other = await api('POST', '/webhook_subscriptions', {
    body: { url: witness.url, events: ['webhook.subscription.disabled', 'webhook.subscription.resumed'] },
  })
  const secretId: string = (await api('GET', path())).body.data.secrets[0].id
  expect(await disable()).toMatchObject({ status: 'disabled', disabled_reason: 'operator' })
  for (const ask of [
    () => patch({ status: 'active' }),
    () => api('POST', path('/secrets')),
    () => api('DELETE', path(`/secrets/${secretId}`)),
    () => api('POST', path('/test')),
    () => api('POST', '/webhook_deliveries/replays', { body: { subscription_id: id, since: '2026-01-01T00:00:00Z' } }),
  ]) {
    expect(await ask()).toMatchObject({
      status: 409,
      body: { error: { type: 'conflict', code: 'webhook_subscription_disabled' } },
    })
  }
  const missed = await inbound(newPhone(), 'while disabled')
  await until(async () => {
    const { body } = await api('GET', `/webhook_deliveries?subscription_id=${id}&status=dead`)
    const dead = body.data.find((one: Json) => one.event_id === missed)
    expect(dead).toMatchObject({ error_code: 'subscription_disabled', attempt_count: 0, next_attempt_at: null })
  })
  expect(await api('POST', path('/enable'), { body: { url: 'https://10.0.0.1/' } })).toMatchObject({
    status: 400,
    body: { error: { code: 'invalid_field_value', param: 'url' } },
  })
  const enabled = await api('POST', path('/enable'), { body: { url: `${receiver.url}/moved` } })
  expect(enabled).toMatchObject({
    status: 200,
    body: {
      data: {
        status: 'active',
        disabled_reason: null,
        replayable_count: expect.any(Number),
        url: `${receiver.url}/moved`,
      },
    },
  })
  await got(await inbound(newPhone(), 'again'))
  const told = () => witness.deliveries.filter(({ body }) => body.data.subscription.id === id)
  await until(() => expect(told()).toHaveLength(2))
  expect(told().map(({ body }) => [body.type, body.data.reason])).toEqual(
    expect.arrayContaining([
      ['webhook.subscription.disabled', 'operator'],
      ['webhook.subscription.resumed', 'enabled'],
    ]),
  )
  for (const { body } of told()) expect(body.data.subscription).not.toHaveProperty('secrets')
  await api('DELETE', `/webhook_subscriptions/${other.body.data.id}`)
  witness.close()
})

describe('what is wrong is refused by its name', () => {
  test.each([
    [{ url: 'http://93.184.216.34/' }, 'url'],
    [{ url: 'https://localhost/' }, 'url'],
    [{ url: 'nonsense' }, 'url'],
    [{ url: '' }, 'url'],
    [{ url: null }, 'url'],
    [{ events: [] }, 'events'],
    [{ events: ['message.received', 'message.received'] }, 'events[1]'],
    [{ events: ['message.imagined'] }, 'events[0]'],
    [{ events: ['webhook.test'] }, 'events[0]'],
    [{ events: 'message.received' }, 'events'],
    [{ description: 'x'.repeat(1_001) }, 'description'],
    [{ phone_number_ids: ['abc'] }, 'phone_number_ids[0]'],
    [{ phone_number_ids: ['999999999999'] }, 'phone_number_ids[0]'],
    [{ phone_number_ids: [phone, '999999999999'] }, 'phone_number_ids[1]'],
  ])('%j', async (wrong, param) => {
    const expected = { status: 400, body: { error: { code: 'invalid_field_value', param } } }
    const body = { url: receiver.url, events: ['message.received'], ...wrong }
    expect(await api('POST', '/webhook_subscriptions', { body })).toMatchObject(expected)
    expect(await patch(wrong)).toMatchObject(expected)
  })

  test.each([
    ['PATCH', '', { status: 'disabled' }, 'status'],
    ['POST', '/secrets', { expires_in_hours: 0 }, 'expires_in_hours'],
    ['POST', '/secrets', { expires_in_hours: 1.5 }, 'expires_in_hours'],
    ['POST', '/enable', { url: 7 }, 'url'],
  ] as const)('%s %s %j', async (method, more, body, param) => {
    expect(await api(method, path(more), { body })).toMatchObject({
      status: 400,
      body: { error: { code: 'invalid_field_value', param } },
    })
  })

  test('a filter of the list', async () => {
    expect(await api('GET', '/webhook_subscriptions?status=gone')).toMatchObject({
      status: 400,
      body: { error: { code: 'invalid_field_value', param: 'status' } },
    })
  })
})

test('another organization neither sees nor touches it', async () => {
  const key = strangerKey
  const secretId: string = (await api('GET', path())).body.data.secrets[0].id
  for (const answer of [
    await api('GET', path(), { key }),
    await api('PATCH', path(), { key, body: { status: 'paused' } }),
    await api('DELETE', path(), { key }),
    await api('POST', path('/test'), { key }),
    await api('POST', path('/enable'), { key }),
    await api('POST', path('/secrets'), { key }),
    await api('DELETE', path(`/secrets/${secretId}`), { key }),
  ]) {
    expect(answer).toMatchObject({ status: 404, body: { error: { code: 'resource_not_found' } } })
  }
  expect((await api('GET', '/webhook_subscriptions', { key })).body.data).toEqual([])
  expect((await api('GET', path())).body.data).toMatchObject({ status: 'active' })
})

test('the list pages newest first, and filters by status', async () => {
  const key = strangerKey
  const ids: string[] = []
  for (let n = 0; n < 5; n++) {
    const body = { url: `${receiver.url}/${n}`, events: ['message.received'] }
    ids.unshift((await api('POST', '/webhook_subscriptions', { key, body })).body.data.id)
  }
  const paged: string[] = []
  let cursor = ''
  do {
    const { body } = await api('GET', `/webhook_subscriptions?limit=2${cursor}`, { key })
    paged.push(...body.data.map((one: Json) => one.id))
    cursor = body.next_cursor === null ? '' : `&cursor=${body.next_cursor}`
  } while (cursor !== '')
  expect(paged).toEqual(ids)
  await api('PATCH', `/webhook_subscriptions/${ids[2]}`, { key, body: { status: 'paused' } })
  const { body } = await api('GET', '/webhook_subscriptions?status=paused', { key })
  expect(body.data.map((one: Json) => one.id)).toEqual([ids[2]])
  for (const one of ids) await api('DELETE', `/webhook_subscriptions/${one}`, { key })
})
