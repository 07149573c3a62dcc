import { randomBytes } from 'node:crypto'
import type { Answer, Handler, Input, Rpc } from '@app/shared/api/contract.ts'
import { systemCaller } from '@app/shared/bus/ask.ts'
import { explainIdempotencyKey } from '@app/shared/idempotency/explain-idempotency-key.ts'
import { seal } from '@app/shared/secrets/seal.ts'
import { newId } from '@app/shared/values/ids.ts'
import { createTestDatabase, type TestDatabase } from '@app/test/database.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { App } from '../app.ts'
import { explainAccounts } from './explain-accounts.ts'
import { explainCustomer } from './explain-customer.ts'
import { explainRequest } from './explain-request.ts'
import { explainSetupLink } from './explain-setup-link.ts'

const sealKeys = { current: 'k1', byId: new Map([['k1', randomBytes(32)]]) }
let database: TestDatabase
let app: App
beforeAll(async () => {
  database = await createTestDatabase('platform')
  app = { sql: database.sql, sealKeys } as unknown as App
})
afterAll(() => database.drop())

const ask = async <C extends Rpc>(handler: Handler<App, C>, body: Input<C>['body']) =>
  (await handler(app, { params: {}, query: {}, body } as Input<C>, systemCaller())) as Answer<C>

const put = (table: string, row: object) => app.sql`insert into ${app.sql(table)} ${app.sql(row as never)}`
const at = (seconds: number) => new Date(Date.now() + seconds * 1000)
const past = new Date('2026-01-02T03:04:05.000Z')
const hour = 3_600

/** An organization with a customer. */
async function newCustomer({ organization = {}, customer = {} } = {}) {
  const [org, team, id] = [newId('org'), newId('team'), newId('cus')]
  const features = ['messaging', 'platform', 'webhooks']
  await put('organizations', { id: org, name: 'A', tier: 'pro', features, subscription: 'active', ...organization })
  await put('teams', { organization_id: org, id: team, name: 'Default' })
  const row = { organization_id: org, id, team_id: team, name: 'B', metadata: {}, status: 'active' }
  await put('customers', { ...row, created_at: past, updated_at: past, ...customer })
  return { org, team, id }
}

const archived = { status: 'archived', archived_at: new Date() }

test.each([
  ['pending', { status: 'pending' }, 'is pending: it never had a number, and its first one makes it active'],
  ['active', {}, 'is active'],
  ['suspended', { status: 'suspended' }, /^is suspended by its owner: .* refused \(customer_suspended\) until/],
  ['archived', archived, /^is archived: .*, and only `customer restore` brings it back$/],
])('a customer says what its state means: %s', async (_state, customer, words) => {
  const { org, id } = await newCustomer({ customer })
  const { history } = await ask(explainCustomer, { id })
  expect(history[0]).toMatchObject({ at: past.toISOString(), what: 'was made', details: { organization_id: org } })
  expect(history.at(-1)?.at).toBeNull()
  expect(history.at(-1)?.what).toMatch(words)
})

test('a customer tells when it was archived, and of its numbers and setup links', async () => {
  const customer = await newCustomer({ customer: { ...archived, first_number_at: past } })
  const { id: account } = await newAccount({}, customer)
  const link = await newLink({ status: 'revoked' }, customer)
  const { history } = await ask(explainCustomer, { id: customer.id })
  const whats = history.map(({ what }) => what)
  expect(whats).toEqual(
    expect.arrayContaining([
      'its first number was connected',
      'was archived, and its open setup links revoked',
      `its setup link ${link} was made, which is revoked`,
      'is connected, and sends are refused (customer_suspended): its customer is archived',
    ]),
  )
  expect(history.find(({ what }) => what === 'the account was made')?.details).toMatchObject({ account_id: account })
})

/** An account of a customer, as it may stand. */
async function newAccount(fields: object, customer?: Awaited<ReturnType<typeof newCustomer>>) {
  const { org, team, id: customerId } = customer ?? (await newCustomer())
  const [id, phone] = [newId('acc'), String(Math.floor(Math.random() * 1e12))]
  const row = { organization_id: org, id, phone_number_id: phone, business_account_id: '900', team_id: team }
  await put('accounts', { ...row, customer_id: customerId, status: 'connected', sealed_token: 'x', ...fields })
  return { id, phone, org }
}

const restricted = { status: 'degraded', upstream_status: 'RESTRICTED' }
const accounts: [string, object, string | RegExp][] = [
  ['connected', {}, 'is connected, and sends are taken'],
  [
    'banned',
    { status: 'disconnected', upstream_status: 'BANNED' },
    /account_not_connected\): the platform says BANNED/,
  ],
  ['taken back', { status: 'disconnected', removed: true }, /\(account_not_connected\): the business took it/],
  [
    'unverified',
    { status: 'onboarding', upstream_status: 'PENDING' },
    /\(chat_number_not_verified\): .* says PENDING$/,
  ],
  ['restricted', restricted, /\(account_restricted\): the platform restricts it: it says RESTRICTED$/],
  ['reported', { ...restricted, reported_until: at(hour) }, /a restriction, which stands until 20.*Z at least$/],
  ['reported long ago', { ...restricted, reported_until: past }, /the platform restricts it: it says RESTRICTED$/],
  ['removed', { attached: false, status: 'disconnected' }, /^is not this organization’s any more: it was removed/],
  ['without a number', { phone_number_id: null, status: 'onboarding' }, /^waits for the business account 900 to have/],
  [
    'without a number, its link over',
    { phone_number_id: null, attached: false, status: 'disconnected', sealed_token: null },
    /^waited for the business account 900 to have .*, and a later link goes on with it$/,
  ],
]

test.each(accounts)('an account says whether sends are taken, and why not: %s', async (_state, fields, words) => {
  const { id } = await newAccount(fields)
  const { history } = await ask(explainAccounts, { id })
  expect(history.at(-1)?.what).toMatch(words)
  expect(history.at(-1)?.details).toMatchObject({ account_id: id })
})

test.each([
  [{ subscription: 'lapsed' }, /\(subscription_inactive\): the subscription of its organization has lapsed$/],
  [{ features: ['platform'] }, /\(feature_not_entitled\): its organization is not entitled to `messaging`$/],
])('an account tells what its organization may not: %j', async (organization, words) => {
  const { id } = await newAccount({}, await newCustomer({ organization }))
  expect((await ask(explainAccounts, { id })).history.at(-1)?.what).toMatch(words)
})

test('an account is found by the ids of the platform, and says when that is asked next', async () => {
  const next = at(600)
  const { id, phone, org } = await newAccount({
    business_account_id: '77001',
    poll_at: next,
    polled_at: past,
    poll_failures: 2,
  })
  for (const name of [id, phone, '77001']) {
    const { phone_number_ids, history } = await ask(explainAccounts, { id: name })
    expect(phone_number_ids).toEqual([phone])
    expect(history[0]?.details).toMatchObject({ organization_id: org, phone_number_id: phone })
    expect(history).toContainEqual(
      expect.objectContaining({ at: past.toISOString(), what: 'the platform was asked last how it is' }),
    )
    expect(history.at(-1)?.details).toMatchObject({ next_at: next, questions_without_an_answer: 2 })
  }
})

async function newLink(fields: object, customer?: Awaited<ReturnType<typeof newCustomer>>) {
  const { org, id: customerId } = customer ?? (await newCustomer())
  const id = newId('csl')
  const row = { organization_id: org, id, customer_id: customerId, token_hash: id, token_last4: 'abcd' }
  await put('setup_links', { ...row, status: 'active', expires_at: at(hour), created_at: past, ...fields })
  return id
}

const links: [string, object, Parameters<typeof newCustomer>[0], string | RegExp][] = [
  ['active', {}, {}, /^can be used until 20.*Z$/],
  ['expired', { expires_at: at(-60) }, {}, 'is expired: its customer needs another link'],
  [
    'revoked',
    { status: 'revoked' },
    {},
    /^is revoked, by its owner or with its customer; the records do not know when$/,
  ],
  ['archived with its customer', {}, { customer: archived }, /^is revoked, by its owner or with its customer/],
  [
    'barred by its customer',
    {},
    { customer: { status: 'suspended' } },
    /^is refused \(customer_suspended\): its customer/,
  ],
  ['barred by its plan', {}, { organization: { features: [] } }, /^is refused \(feature_not_entitled\): its org/],
  ['lapsed', {}, { organization: { subscription: 'lapsed' } }, /^is refused \(subscription_lapsed\): the subscription/],
]

test.each(links)('a setup link says whether it can be used: %s', async (_state, fields, customer, words) => {
  const { history } = await ask(explainSetupLink, { id: await newLink(fields, await newCustomer(customer)) })
  expect(history[0]).toMatchObject({ at: past.toISOString(), what: 'was made' })
  expect(history.at(-1)?.what).toMatch(words)
  expect(history.map(({ what }) => what)).toContain('nobody has begun a walk through it, or that was over 30 days ago')
})

const held = { held_until: at(hour) }
const walks: [string, object, string][] = [
  ['just begun', { step: 'begun' }, 'the dialog has told nothing: it is open still, or was left'],
  [
    'whose code was not spent',
    { step: 'begun', attempts: 1, last_error: 'reset' },
    'the code of the dialog was not spent, after: reset; its page may try again',
  ],
  ['that is exchanged', { step: 'exchanging', attempts: 1, ...held }, 'the code of the dialog is being spent'],
  [
    'whose process died',
    { step: 'exchanging', attempts: 1 },
    'broke off while the code was spent: its page may try again',
  ],
  [
    'that is being connected',
    { step: 'exchanged', attempts: 2, ...held },
    'the code is spent, and the number is being connected: attempt 2 runs',
  ],
  [
    'that is put off',
    { step: 'exchanged', attempts: 2, last_error: 'silence', due_at: at(20) },
    'the code is spent, and the number is being connected: attempt 3 is next, after: silence',
  ],
  [
    'whose data are asked for',
    { step: 'connected', account_id: 'acc_1', phone_number_id: '1', attempts: 1, due_at: at(20) },
    'is connected as acc_1, and the rest is still to be asked for: attempt 2 is next',
  ],
  [
    'without a number',
    { step: 'connected', account_id: 'acc_1', attempts: 1, ...held },
    'is connected as acc_1, which waits for a number: attempt 1 runs',
  ],
  [
    'that is done',
    { step: 'done', account_id: 'acc_1', phone_number_id: '1' },
    'ended: the number is connected as acc_1',
  ],
  ['that waits', { step: 'done', account_id: 'acc_1' }, 'ended: acc_1 is there, and waits for a number'],
  ['that failed', { step: 'failed', last_error: 'The number is taken.' }, 'was refused: The number is taken.'],
]

test.each(walks)('a setup link tells of a walk through the dialog: one %s', async (_step, fields, what) => {
  const customer = await newCustomer()
  const link = await newLink({}, customer)
  const row = { organization_id: customer.org, id: newId('evt'), setup_link_id: link }
  await put('onboardings', { ...row, created_at: past, ...fields })
  const [, begun, then] = (await ask(explainSetupLink, { id: link })).history
  expect(begun?.at).toBe(past.toISOString())
  expect(begun?.what).toBe('its page was opened, and the dialog of the platform begun')
  expect(then?.what).toBe(what)
  if ('due_at' in fields) expect(then?.details?.['next_at']).toEqual(fields.due_at)
})

test('of a setup link whose page was opened many times the walks that went on and the newest are told, and that there were more', async () => {
  const customer = await newCustomer()
  const link = await newLink({}, customer)
  await app.sql`
    insert into onboardings (organization_id, id, setup_link_id, step, created_at)
    select ${customer.org}, lpad(n::text, 8, '0'), ${link}, case n when 25 then 'exchanged' else 'begun' end, now() - n * interval '1 s'
    from generate_series(1, 25) n
  `
  const { history } = await ask(explainSetupLink, { id: link })
  const begun = history.filter(({ what }) => what.startsWith('its page was opened'))
  expect([begun.length, begun[0]?.details?.['walk'], begun.at(-1)?.details?.['walk']]).toEqual([
    20,
    '00000025',
    '00000001',
  ])
  expect(history.map(({ what }) => what)).toContain(
    'only 20 of its walks are shown: those that went on, and the newest',
  )
})

test('an expired setup link tells when that was', async () => {
  const { history } = await ask(explainSetupLink, { id: await newLink({ expires_at: past }) })
  expect(history).toContainEqual({ at: past.toISOString(), what: 'expired' })
})

test('a consumed setup link tells when, and by which account', async () => {
  const customer = await newCustomer()
  const { id: account } = await newAccount({}, customer)
  const link = await newLink({ status: 'consumed', consumed_at: past, account_id: account }, customer)
  const { history } = await ask(explainSetupLink, { id: link })
  expect(history).toContainEqual({
    at: past.toISOString(),
    what: 'was consumed: a number was connected',
    details: { account_id: account },
  })
  expect(history.at(-1)?.what).toBe('is consumed: for another number its customer needs another link')
})

describe('an idempotency key', () => {
  const organization_id = newId('org')
  const made = { data: { id: 'key_1', object: 'api_key', secret: 'sk_live_hidden' }, request_id: 'req_1' }
  let keys = 0
  async function used(fields: object, answer: string = JSON.stringify(made)) {
    const key = `k${++keys}`
    await put('idempotency.keys', {
      organization_id,
      key,
      fingerprint: 'f',
      status: 201,
      answer: Buffer.from(answer),
      created_at: at(-60),
      ...fields,
    })
    return ask(explainIdempotencyKey, { organization_id, key })
  }

  const states: [string, object, RegExp][] = [
    ['answered', {}, /^was answered with 201: the same request gets that again until 20.*Z, another one/],
    ['running', { status: 0, held_until: at(30) }, /^its request runs: .* until 20.*Z$/],
    ['left', { status: 0, held_until: at(-1) }, /^its request ended without an answer: .* may try again$/],
    ['past its day', { created_at: at(-25 * hour) }, /^is free again since 20.*Z: a request with it is a new one$/],
  ]
  test.each(states)('that is %s says so', async (_state, fields, words) => {
    const { history } = await used(fields)
    expect(history[0]?.what).toBe('the key was used')
    expect(history.at(-1)?.what).toMatch(words)
  })

  test('leads to its request and to what that made, also where the answer is sealed, and shows nothing else of it', async () => {
    const key = `k${keys + 1}`
    const sealed = seal(sealKeys, JSON.stringify(made), `idempotency:${organization_id}:${key}`)
    for (const answer of [await used({ sealed: true }, sealed), await used({})]) {
      expect(answer.request_id).toBe('req_1')
      expect(answer.history.at(-1)?.details).toMatchObject({ answered_with: 'key_1', object: 'api_key' })
      expect(JSON.stringify(answer)).not.toContain('sk_live')
    }
  })

  test('of another organization is not there', async () => {
    await used({})
    const asked = ask(explainIdempotencyKey, { organization_id: newId('org'), key: `k${keys}` })
    await expect(asked).rejects.toThrow('No such resource')
  })

  test('of a list leads to its request alone', async () => {
    const { request_id: request, history } = await used(
      {},
      JSON.stringify({ data: [{ id: 'x' }], request_id: 'req_2' }),
    )
    expect(request).toBe('req_2')
    expect(history.at(-1)?.details).not.toHaveProperty('answered_with')
  })
})

test.each([
  [null, 'POST /v1/customers: 201'],
  ['rate_limit_exceeded', 'POST /v1/customers: 201, rate_limit_exceeded'],
  [
    'resource_not_found label_id',
    'POST /v1/customers: 201, resource_not_found: what label_id names is not there, or not this organization’s',
  ],
])('a request tells what the gateway answered: %s', async (problem, what) => {
  const id = newId('req')
  const call = {
    request_id: id,
    method: 'POST',
    path: '/v1/customers',
    status: 201,
    duration_ms: 3,
    ip: '::1',
    problem,
  }
  await put('api_log', { at: past, ...call })
  expect((await ask(explainRequest, { id })).history).toMatchObject([{ at: past.toISOString(), what }])
})

test('what is not there is not found', async () => {
  await expect(ask(explainCustomer, { id: newId('cus') })).rejects.toThrow('No such resource')
  await expect(ask(explainSetupLink, { id: newId('csl') })).rejects.toThrow('No such resource')
  await expect(ask(explainAccounts, { id: newId('acc') })).rejects.toThrow('No such resource')
  const body = { organization_id: newId('org'), key: 'k' }
  await expect(ask(explainIdempotencyKey, body)).rejects.toThrow('No such resource')
})
