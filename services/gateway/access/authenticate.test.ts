import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { Problem } from '@app/shared/api/problem.ts'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { startTestGateway, type TestGateway } from '../testing/gateway.ts'

let gateway: TestGateway
beforeAll(async () => (gateway = await startTestGateway()))
beforeEach(() => (gateway.platform.delay = () => Promise.resolve()))
afterAll(() => gateway.close())

const me = async (headers: Record<string, string | string[]>) => {
  const answer = await gateway.ask('/v1/me', { headers })
  return { status: answer.status, code: answer.json().error?.code, type: answer.json().error?.type }
}
const refused = (code: string) => ({ status: 401, code, type: 'authentication_error' })
const unknownKey = () => `svc_live_${randomBytes(18).toString('base64url')}`
const randomIp = () => [...randomBytes(4)].join('.')

describe('the header', () => {
  test('without one the key is missing', async () => {
    expect(await me({})).toEqual(refused('missing_api_key'))
  })

  test('a refusal says which scheme is taken', async () => {
    for (const headers of [{}, { authorization: 'Basic eDp5' }]) {
      expect((await gateway.ask('/v1/me', { headers })).headers['www-authenticate']).toBe('Bearer')
    }
    const { text } = gateway.platform.issueKey()
    expect((await gateway.ask('/v1/me', { key: text })).headers).not.toHaveProperty('www-authenticate')
  })

  test('elsewhere than in the header a key is not seen', async () => {
    const { text } = gateway.platform.issueKey()
    expect(await me({ cookie: `authorization=Bearer ${text}; api_key=${text}` })).toEqual(refused('missing_api_key'))
    const answer = await gateway.ask(`/v1/me?authorization=Bearer%20${text}&api_key=${text}`)
    expect(answer.json().error.code).toBe('missing_api_key')
  })

  test.each<[string, (key: string) => string | string[]]>([
    ['empty', () => ''],
    ['Basic', (key) => `Basic ${Buffer.from(`${key}:`).toString('base64')}`],
    ['the key alone', (key) => key],
    ['lower-cased', (key) => `Bearer ${key.toLowerCase()}`],
    ['upper-cased', (key) => `Bearer ${key.toUpperCase()}`],
    ['one character short', (key) => `Bearer ${key.slice(0, -1)}`],
    ['one character long', (key) => `Bearer ${key}x`],
    ['another prefix', (key) => `Bearer ${key.replace('live', 'test')}`],
    ['doubled in one header', (key) => `Bearer ${key} ${key}`],
    ['doubled in two headers', (key) => [`Bearer ${key}`, `Bearer ${key}`]],
    ['beside another one', (key) => [`Bearer ${key}`, 'Basic eDp5']],
    ['unknown', () => `Bearer ${unknownKey()}`],
    ['30,000 characters', (key) => `Bearer ${key.repeat(900)}`],
  ])('%s is invalid', async (_name, authorization) => {
    const key = gateway.platform.issueKey({ text: `svc_live_Ab${randomBytes(16).toString('hex').slice(0, 21)}Z` }).text
    expect(await me({ authorization: authorization(key) })).toEqual(refused('invalid_api_key'))
  })

  test.each(['Bearer', 'bearer', 'BEARER', 'bEaReR'])('the scheme %s is known', async (scheme) => {
    expect((await me({ authorization: `${scheme} ${gateway.platform.issueKey().text}` })).status).toBe(200)
  })

  test('revoked and expired keys are told apart', async () => {
    const revoked = gateway.platform.issueKey({ state: 'revoked' })
    const expired = gateway.platform.issueKey({ state: 'expired' })
    expect(await me({ authorization: `Bearer ${revoked.text}` })).toEqual(refused('revoked_api_key'))
    expect(await me({ authorization: `Bearer ${expired.text}` })).toEqual(refused('expired_api_key'))
  })
})

describe('what is remembered', () => {
  test('a key is looked up once in two seconds, an unknown one too', async () => {
    for (const [key, status] of [
      [gateway.platform.issueKey().text, 200],
      [unknownKey(), 401],
    ] as const) {
      const before = gateway.platform.lookUps.keys
      const answers = await Promise.all(Array.from({ length: 20 }, () => me({ authorization: `Bearer ${key}` })))
      expect(answers.every((answer) => answer.status === status)).toBe(true)
      expect(gateway.platform.lookUps.keys).toBe(before + 1)
    }
  })

  test('a key expires between look-ups', async () => {
    const expiresAt = Date.now() + 300
    const key = gateway.platform.issueKey({ expiresAt: new Date(expiresAt).toISOString() })
    const before = gateway.platform.lookUps.keys
    expect((await me({ authorization: `Bearer ${key.text}` })).status).toBe(200)
    while (Date.now() < expiresAt) await sleep(expiresAt - Date.now())
    expect(await me({ authorization: `Bearer ${key.text}` })).toEqual(refused('expired_api_key'))
    expect(gateway.platform.lookUps.keys).toBe(before + 1)
  })

  test('a key is accepted for less than 2 s after the look-up that found it was sent', async () => {
    const key = gateway.platform.issueKey()
    const authorization = `Bearer ${key.text}`
    let lookedUpAt = 0
    gateway.platform.delay = () => {
      lookedUpAt = performance.now()
      return sleep(500)
    }
    const first = me({ authorization })
    key.state = 'revoked'
    expect((await first).status).toBe(401)

    const other = gateway.platform.issueKey()
    const found = await me({ authorization: `Bearer ${other.text}` })
    other.state = 'revoked'
    const foundAt = lookedUpAt
    const lastAccepted = await lastAcceptedAt(`Bearer ${other.text}`)
    expect(found.status).toBe(200)
    expect(lastAccepted - foundAt).toBeLessThan(2_000)
    expect(lastAccepted - foundAt).toBeGreaterThan(1_000)
  })

  async function lastAcceptedAt(authorization: string): Promise<number> {
    let accepted = 0
    for (;;) {
      const sentAt = performance.now()
      const { status } = await me({ authorization })
      if (status === 401) return accepted
      expect(status).toBe(200)
      accepted = sentAt
      // Less often than its budget of reads allows.
      await sleep(10)
    }
  }
})

test('a platform service that does not answer is a 503, not a 401, and counts against no address, however often', async () => {
  gateway.platform.delay = () => sleep(2_500)
  const headers = { 'x-forwarded-for': randomIp() }
  const asked = Array.from({ length: 120 }, () =>
    gateway.ask('/v1/me', { key: gateway.platform.issueKey().text, headers }),
  )
  const answers = await Promise.all(asked)
  expect(new Set(answers.map(({ status, headers: told }) => `${status} ${String(told['retry-after'])}`))).toEqual(
    new Set(['503 1']),
  )
})

const hex = () => randomBytes(2).toString('hex')
const [ip, network] = [randomIp(), `2001:db8:${hex()}:${hex()}`]

test.each([
  ['an address', () => ip],
  ['a network of IPv6', () => `${network}::${hex()}`],
])('the 101st failure of %s in a minute is a 429, and a valid key is not refused for it', async (_, address) => {
  const spoofed = () => ({ 'x-forwarded-for': `${randomIp()}, ${address()}` })
  const startedAt = performance.now()
  const answers = await Promise.all(Array.from({ length: 120 }, () => gateway.ask('/v1/me', { headers: spoofed() })))
  const comeBack = Math.floor((performance.now() - startedAt) / 600)
  const limited = answers.filter(({ status }) => status === 429)
  expect(answers.filter(({ status }) => status === 401).length).toBeLessThanOrEqual(101 + comeBack)
  expect(limited.length).toBeGreaterThanOrEqual(19 - comeBack)
  expect(limited[0]?.json().error).toMatchObject({ type: 'rate_limit_error', code: 'rate_limit_exceeded' })
  expect(Number(limited[0]?.headers['retry-after'])).toBeGreaterThanOrEqual(1)
  const unknown = () => gateway.ask('/v1/me', { key: unknownKey(), headers: spoofed() })
  // One comes back every 600 ms.
  const more = await Promise.all(Array.from({ length: 20 }, unknown))
  expect(more.map(({ status }) => status)).toContain(429)
  expect((await gateway.ask('/v1/me', { key: gateway.platform.issueKey().text, headers: spoofed() })).status).toBe(200)
  expect((await me({ 'x-forwarded-for': randomIp() })).status).toBe(401)
})

describe('the number of the path', () => {
  test('is looked up once in two seconds, for each organization by itself', async () => {
    const key = gateway.platform.issueKey()
    gateway.platform.accounts.add(`${key.organizationId}:5550001111`)
    const before = gateway.platform.lookUps.accounts
    for (let n = 0; n < 3; n++) {
      expect((await gateway.ask('/v1/5550001111/messages', { key: key.text })).status).toBe(503)
    }
    expect(gateway.platform.lookUps.accounts).toBe(before + 1)
    const stranger = gateway.platform.issueKey()
    expect((await gateway.ask('/v1/5550001111/messages', { key: stranger.text })).status).toBe(404)
  })

  test('is not taken for a stranger’s while it cannot be looked up', async () => {
    const key = gateway.platform.issueKey()
    gateway.platform.accounts.add(`${key.organizationId}:5550003333`)
    expect((await gateway.ask('/v1/me', { key: key.text })).status).toBe(200)
    gateway.platform.delay = () => Promise.reject(new Problem('service_unavailable'))
    expect((await gateway.ask('/v1/5550003333/messages', { key: key.text })).status).toBe(503)
  })

  test('is there within 200 ms after it was connected', async () => {
    const key = gateway.platform.issueKey()
    expect((await gateway.ask('/v1/5550002222/messages', { key: key.text })).status).toBe(404)
    gateway.platform.accounts.add(`${key.organizationId}:5550002222`)
    const now = performance.now.bind(performance)
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => now() + 200)
    onTestFinished(() => clock.mockRestore())
    expect((await gateway.ask('/v1/5550002222/messages', { key: key.text })).status).toBe(503)
  })
})
