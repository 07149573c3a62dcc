import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, inject, test } from 'vitest'
import { admin } from './admin.ts'
import { client, until } from './client.ts'

const { api, control, phone, sendText } = client()
const stack = inject('stack')

test('GET /me tells who asks', async () => {
  const { body } = await api('GET', '/me')
  expect(body.data).toMatchObject({
    organization: { id: stack.organization_id, object: 'organization' },
    api_key: { object: 'api_key', last4: stack.api_key.slice(-4) },
    rate_limits: { tier: 'unlimited' },
    teams: [{ object: 'team', name: 'Default' }],
  })
})

test('GET /accounts lists the connected number', async () => {
  const { body } = await api('GET', '/accounts')
  expect(body).toMatchObject({ has_more: false, next_cursor: null })
  expect(body.data).toContainEqual(
    expect.objectContaining({ object: 'account', phone_number_id: phone, status: 'connected', customer_id: null }),
  )
})

const valid = stack.api_key

test.each([
  ['no header', {}, 'missing_api_key'],
  ['another scheme', { authorization: `Basic ${valid}` }, 'invalid_api_key'],
  ['no scheme', { authorization: valid }, 'invalid_api_key'],
  ['an unknown key', { authorization: `Bearer svc_live_${'A'.repeat(24)}` }, 'invalid_api_key'],
  ['the test prefix', { authorization: `Bearer ${valid.replace('live', 'test')}` }, 'invalid_api_key'],
  ['a lower-cased key', { authorization: `Bearer ${valid.toLowerCase()}` }, 'invalid_api_key'],
  ['a doubled key', { authorization: `Bearer ${valid}${valid}` }, 'invalid_api_key'],
  ['a cookie', { cookie: `api_key=${valid}` }, 'missing_api_key'],
])('%s is a 401', async (_what, headers, code) => {
  const refused = await api('GET', '/me', { key: null, headers: headers as Record<string, string> })
  expect(refused).toMatchObject({ status: 401, body: { error: { type: 'authentication_error', code } } })
})

test('a key in the query is not accepted; the scheme is read without regard to case', async () => {
  expect((await api('GET', `/me?api_key=${valid}&access_token=${valid}`, { key: null })).status).toBe(401)
  expect((await api('GET', '/me', { key: null, headers: { authorization: `bEaReR ${valid}` } })).status).toBe(200)
})

test('an unknown route without a key is a 401', async () => {
  expect((await api('GET', '/no/such/route', { key: null })).status).toBe(401)
})

test('an operator is told which id is unknown', async () => {
  await expect(admin('key', 'revoke', 'key_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD')).rejects.toThrow('Nothing has this key_id.')
  const unknown = 'wbs_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD'
  await expect(admin('webhook', 'disable', unknown)).rejects.toThrow('Nothing has this subscription_id.')
})

test.each([
  [['--tier', 'gold'], '"message":"--tier: must be one of starter,', 'tier'],
  [['--features', 'messaging,telepathy'], '"message":"--features: must be one of messaging,', 'features[1]'],
  [['--message-ttl-hours', '0'], '"message":"--message-ttl-hours: must be at least 1."', 'settings.message_ttl_hours'],
  [['--retention-days', '9'.repeat(20)], '"message":"--retention-days: must be at most 3650."', 'retention_days'],
])('an operator reads of the option that was typed: %j', async (options, message, param) => {
  const refused = admin('organization', 'create', '--name', 'Other', ...options)
  await expect(refused).rejects.toThrow(message)
  await expect(refused).rejects.toThrow(`"param":"${param}"`)
})

test('an operator is not told that nothing has an id which another organization has', async () => {
  const { id } = await admin('organization', 'create', '--name', 'Other')
  const number = ['--organization', id, '--phone-number-id', phone]
  await expect(admin('account', 'disconnect', ...number)).rejects.toThrow(
    'Nothing of this organization has this phone_number_id.',
  )
})

test('another organization sees nothing of this one', async () => {
  const { id } = await admin('organization', 'create', '--name', 'Other')
  const { key } = await admin('key', 'create', '--organization', id, '--label', 'other')
  const message = (await sendText('mine')).body.data
  const paths = [
    `/${phone}/messages`,
    `/${phone}/messages/${message.id}`,
    `/${phone}/contacts`,
    `/${phone}/conversations`,
    `/${phone}/conversations/${message.conversation_id}`,
  ]
  for (const path of paths) expect((await api('GET', path, { key })).status).toBe(404)
  expect((await sendText('not yours', { key })).status).toBe(404)
  expect((await api('GET', '/accounts?status=all', { key })).body.data).toEqual([])
  expect((await api('GET', '/webhook_deliveries', { key })).body.data).toEqual([])
})

test('every answer tells the limits; over them it is a 429 that says when to come back', async () => {
  const { id } = await admin('organization', 'create', '--name', 'Small', '--tier', 'starter')
  const { key } = await admin('key', 'create', '--organization', id, '--label', 'small')
  const first = await api('GET', '/me', { key })
  expect(first.headers).toMatchObject({ 'x-ratelimit-limit': '600' })
  expect(first.headers['ratelimit-policy']).toBeDefined()
  const answers = await Promise.all(
    Array.from({ length: 80 }, () => api('POST', '/webhook_subscriptions', { key, body: {} })),
  )
  const limited = answers.filter(({ status }) => status === 429)
  const served = answers.filter(({ status }) => status === 400)
  expect(served.length).toBeLessThanOrEqual(62)
  expect(served.length).toBeGreaterThanOrEqual(50)
  expect(limited[0]).toMatchObject({ body: { error: { type: 'rate_limit_error', code: 'rate_limit_exceeded' } } })
  expect(Number(limited[0]?.headers['retry-after'])).toBeGreaterThan(0)
  // Reads have a budget of their own.
  expect((await api('GET', '/me', { key })).status).toBe(200)
})

test('health needs no key', async () => {
  const { status, body } = await api('GET', '/health', { key: null })
  expect({ status, body }).toEqual({ status: 200, body: { status: 'ok', request_id: expect.any(String) } })
  const document = await api('GET', '/openapi.json', { key: null })
  expect(document.body).toMatchObject({ openapi: '3.1.0', info: { version: '1.0.0' } })
})

/** Each waits until the gateways have forgotten what was true before. */
describe.concurrent('what ends', () => {
  test('a revoked key is refused by every gateway as soon as the revocation returns', async () => {
    const { key, id } = await admin('key', 'create', '--organization', stack.organization_id, '--label', 'short-lived')
    for (const gateway of [0, 1]) expect((await api('GET', '/me', { key, gateway })).status).toBe(200)
    let refused = 0
    const racing = Array.from({ length: 8 }, async (_, gateway) => {
      while ((await api('GET', '/me', { key, gateway })).status === 200) await sleep(20)
      refused++
    })
    await admin('key', 'revoke', id)
    for (const gateway of [0, 1]) {
      const answer = await api('GET', '/me', { key, gateway })
      expect(answer).toMatchObject({ status: 401, body: { error: { code: 'revoked_api_key' } } })
    }
    await Promise.all(racing)
    expect(refused).toBe(8)
  })

  test('an expired key is refused', async () => {
    const at = new Date(Date.now() + 4_000).toISOString()
    const { key } = await admin(
      'key',
      'create',
      '--organization',
      stack.organization_id,
      '--label',
      'brief',
      '--expires-at',
      at,
    )
    expect((await api('GET', '/me', { key })).status).toBe(200)
    await until(async () => expect((await api('GET', '/me', { key })).body.error?.code).toBe('expired_api_key'))
  })

  test('what an organization is not entitled to is a 403, and what it has lost ends at once', async () => {
    const { id } = await admin('organization', 'create', '--name', 'Limited', '--features', 'messaging')
    const { key } = await admin('key', 'create', '--organization', id, '--label', 'limited')
    const body = { url: 'https://example.com/hook', events: ['message.sent'] }
    const refused = await api('POST', '/webhook_subscriptions', { key, body })
    expect(refused).toMatchObject({
      status: 403,
      body: { error: { type: 'permission_error', code: 'feature_not_entitled' } },
    })
    const subscribe = () => api('POST', '/webhook_subscriptions', { key, body })
    await admin('organization', 'update', id, '--features', 'messaging,webhooks')
    expect((await subscribe()).status).toBe(201)
    await admin('organization', 'update', id, '--features', 'messaging')
    expect((await subscribe()).status).toBe(403)
  })

  test('a lapsed subscription stops the sends of its numbers, and reading goes on', async () => {
    const organization = await admin('organization', 'create', '--name', 'Lapsing')
    const { key } = await admin('key', 'create', '--organization', organization.id, '--label', 'lapsing')
    const number = await control('/control/numbers', {})
    await admin(
      'account',
      'connect',
      '--organization',
      organization.id,
      '--phone-number-id',
      number.phone_number_id,
      '--access-token',
      number.access_token,
      '--business-account-id',
      number.business_account_id,
    )
    await control('/control/inbound', {
      phone_number_id: number.phone_number_id,
      message: { from: '15550123999', type: 'text', text: { body: 'hi' } },
    })
    const send = () =>
      api('POST', `/${number.phone_number_id}/messages`, {
        key,
        body: { messaging_product: 'chat', to: '+15550123999', type: 'text', text: { body: 'x' } },
      })
    await until(async () => expect((await send()).status).toBe(200))
    await admin('organization', 'update', organization.id, '--subscription', 'lapsed')
    expect(await send()).toMatchObject({ status: 422, body: { error: { code: 'subscription_inactive' } } })
    await admin('organization', 'update', organization.id, '--subscription', 'active', '--features', 'webhooks')
    expect(await send()).toMatchObject({ status: 403, body: { error: { code: 'feature_not_entitled' } } })
    expect((await api('GET', `/${number.phone_number_id}/messages`, { key })).status).toBe(200)
  })
})
