import { randomUUID } from 'node:crypto'
import type { Sql } from '@app/shared/database/database.ts'
import { newId } from '@app/shared/values/ids.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { recordCalls } from '../api-log/record-calls.ts'
import { createKey } from '../keys/create-key.ts'
import { ask, newOrganization, startTestApp, type TestApp } from '../testing/app.ts'
import { lastCallOf, recentCallsOf } from './calls-of-key.ts'
import { explainKey } from './explain-key.ts'
import { explainOrganization } from './explain-organization.ts'

let it: TestApp
beforeAll(async () => {
  it = await startTestApp()
})
afterAll(() => it.close())

async function newKey(fields: Parameters<typeof newOrganization>[1] = {}) {
  const organization_id = await newOrganization(it.app, { tier: 'starter', ...fields })
  return ask(it.app, createKey, { organization_id, label: 'production' })
}

const told = async (id: string) => (await ask(it.app, explainKey, { id })).history
const past = new Date('2026-01-02T03:04:05.000Z')

/** A call of the API log, so many minutes ago. */
async function callWith(key: string, minutesAgo: number, status = 200) {
  const at = new Date(Date.now() - minutesAgo * 60_000)
  const id = newId('req')
  const callers = [newId('key'), key].map((key_id) => ({ organization_id: newId('org'), key_id, ip: '' }))
  const others = `0 1000 1 ${newId('req')} 429 GET /v1/me `
  const calls = [others, `0 1000 2 ${id} ${status} GET /v1/me `, others].join('\n')
  const batch = randomUUID()
  const body = { batch, first_request: id, last_request: id, began: at.toISOString(), callers, calls }
  await ask(it.app, recordCalls, body)
  await it.app.sql`update api_calls set recorded_at = ${at} where last_request = ${id}`
  return { at, id }
}

test('a key tells its budgets, and that nobody has used it; its text and label stay out of it', async () => {
  const key = await newKey()
  const history = await told(key.id)
  expect(history).toMatchObject([
    { what: 'was issued', details: { organization_id: key.organization_id, last4: key.last4 } },
    { at: null, what: 'was not used yet, or not in the last 30 days, which is how far the log goes back' },
    {
      at: null,
      what: 'is good',
      details: { tier: 'starter', write_per_minute: 60, read_per_minute: 600, last_15_minutes: { calls: 0 } },
    },
  ])
  expect(JSON.stringify(history)).not.toMatch(new RegExp(`production|${key.key}`))
  await expect(told(newId('key'))).rejects.toThrow('No such resource')
})

test.each([0.1, 30])('a key tells when it was used last: %d minutes ago', async (minutesAgo) => {
  const key = await newKey()
  await it.app.sql`update api_keys set created_at = now() - interval '1 day' where id = ${key.id}`
  await callWith(key.id, minutesAgo + 5, 429)
  const { at, id } = await callWith(key.id, minutesAgo)
  await callWith(newId('key'), 0)
  const history = await told(key.id)
  expect(history).toContainEqual({
    at: at.toISOString(),
    what: 'was used last: GET /v1/me: 200',
    details: { request_id: id },
  })
  const recent = minutesAgo < 15 ? { calls: 2, rate_limited: 1 } : { calls: 0, rate_limited: 0 }
  expect(history.at(-1)?.details).toMatchObject({ last_15_minutes: recent })
})

test('a log that is too large to be looked through is said to be so', async () => {
  const tooLarge = () => Promise.reject(Object.assign(new Error('canceling statement'), { code: '57014' }))
  expect(await lastCallOf(tooLarge as unknown as Sql, { id: newId('key'), createdAt: past })).toEqual({
    at: null,
    what: 'whether it is used is not known: the log is too large to be looked through',
  })
  let asked = 0
  const largeLater = () => (asked++ < 2 ? Promise.resolve([]) : tooLarge())
  expect((await lastCallOf(largeLater as unknown as Sql, { id: newId('key'), createdAt: past })).what).toMatch(
    /^was not used since 20.*Z; the log before that is too large to be looked through$/,
  )
  expect(await recentCallsOf(tooLarge as unknown as Sql, newId('key'))).toBeNull()
})

test.each<[string, object, string, string[]]>([
  ['expired', { expires_at: past }, 'is expired: requests with it are refused (expired_api_key)', ['expired']],
  [
    'revoked',
    { revoked_at: past },
    'is revoked for good: requests with it are refused (revoked_api_key)',
    ['was revoked'],
  ],
  ['that will expire', { expires_at: new Date('2999-01-01') }, 'is good until 2999-01-01T00:00:00.000Z', []],
])('a key says whether it is taken: one %s', async (_state, fields, words, before) => {
  const key = await newKey()
  await it.app.sql`update api_keys set ${it.app.sql(fields as never)} where id = ${key.id}`
  const history = await told(key.id)
  expect(history.at(-1)?.what).toBe(words)
  // Behind that it was issued, and before its last call and how it stands.
  expect(history.slice(1, -2).map(({ what }) => what)).toEqual(before)
})

test('a key and its organization tell what they may not do', async () => {
  const key = await newKey({ subscription: 'lapsed', features: ['messaging', 'platform'] })
  const [lapsed, feature] = [
    'its subscription has lapsed: sends, and changes of customers, are refused (subscription_inactive)',
    'it is not entitled to `webhooks`: such changes are refused (feature_not_entitled), reads are not',
  ]
  expect((await told(key.id)).at(-1)?.what).toBe(`is good; ${lapsed}; ${feature}`)
  const { history } = await ask(it.app, explainOrganization, { id: key.organization_id })
  expect(history).toMatchObject([
    { what: 'was made' },
    {
      at: null,
      what: `${lapsed}; ${feature}`,
      details: { tier: 'starter', subscription: 'lapsed', retention_days: null },
    },
    { at: null, what: 'has no number', details: { keys: { good: 1 }, customers: {}, numbers: {} } },
  ])
})

test('an organization tells of its numbers and keys by their state; its name stays out of it', async () => {
  const { organization_id: id, id: revoked } = await newKey({ name: 'Bakery Bruno' })
  await ask(it.app, createKey, { organization_id: id, label: 'second' })
  await it.app.sql`update api_keys set revoked_at = now() where id = ${revoked}`
  const [team] = await it.app.sql<[{ id: string }]>`select id from teams where organization_id = ${id}`
  for (const [n, status] of ['connected', 'degraded', 'connected', 'disconnected'].entries()) {
    await it.app.sql`
      insert into accounts (organization_id, id, phone_number_id, business_account_id, team_id, status, sealed_token, attached)
      values (${id}, ${newId('acc')}, ${`77000${n}`}, '900', ${team.id}, ${status}, 'x', ${status !== 'disconnected'})
    `
  }
  const { history } = await ask(it.app, explainOrganization, { id })
  expect(history[1]).toMatchObject({ what: 'may do everything', details: { write_per_minute: 60 } })
  expect(history[2]).toMatchObject({
    what: 'has 3 numbers, of which 2 connected',
    details: { keys: { good: 1, revoked: 1 }, numbers: { connected: 2, degraded: 1 } },
  })
  expect(JSON.stringify(history)).not.toContain('Bruno')
  await expect(ask(it.app, explainOrganization, { id: newId('org') })).rejects.toThrow('No such resource')
})
