import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestGateway, type TestGateway } from '../testing/gateway.ts'

let gateway: TestGateway
beforeAll(async () => (gateway = await startTestGateway()))
afterAll(() => gateway.close())

const tier = { name: 'standard', write_per_minute: 3, read_per_minute: 60 } as const

test('every authenticated answer tells how the budget of its kind stands', async () => {
  const { text: key } = gateway.platform.issueKey({ tier })
  const now = Math.floor(Date.now() / 1000)
  const read = await gateway.ask('/v1/me', { key })
  expect(read.headers).toMatchObject({
    'ratelimit-policy': '"read";q=60;w=60',
    ratelimit: '"read";r=59;t=1',
    'x-ratelimit-limit': '60',
    'x-ratelimit-remaining': '59',
  })
  expect(Number(read.headers['x-ratelimit-reset'])).toBeGreaterThan(now)
  expect(Number(read.headers['x-ratelimit-reset'])).toBeLessThan(now + 5)
  const write = await gateway.ask('/v1/nothing', { key, method: 'PATCH' })
  expect([write.status, write.headers.ratelimit]).toEqual([404, '"write";r=2;t=20'])
  expect((await gateway.ask('/v1/me')).headers.ratelimit).toBeUndefined()
})

test('each key of an organization has budgets of its own', async () => {
  const { organizationId, text: key } = gateway.platform.issueKey({ tier })
  const { text: other } = gateway.platform.issueKey({ tier, organizationId })
  for (const one of [key, other])
    expect((await gateway.ask('/v1/me', { key: one })).headers['x-ratelimit-remaining']).toBe('59')
})

test('over the budget is a 429 with Retry-After, which reaches no service', async () => {
  const { text: key, organizationId } = gateway.platform.issueKey({ tier })
  gateway.platform.accounts.add(`${organizationId}:123456`)
  const asked = gateway.passedOn.length
  for (let n = 0; n < 3; n++) expect((await gateway.ask('/v1/echoes/a', { key, body: {} })).status).toBe(201)
  const lookUps = gateway.platform.lookUps.accounts
  for (const path of ['/v1/echoes/a', '/v1/123456/messages']) {
    const limited = await gateway.ask(path, { key, body: {} })
    expect(limited.status).toBe(429)
    expect(limited.json().error).toMatchObject({ type: 'rate_limit_error', code: 'rate_limit_exceeded' })
    expect(limited.headers).toMatchObject({ ratelimit: '"write";r=0;t=60', 'retry-after': '20' })
  }
  expect(gateway.passedOn.length).toBe(asked + 3)
  expect(gateway.platform.lookUps.accounts).toBe(lookUps)
  expect((await gateway.ask('/v1/me', { key })).status).toBe(200)
})
