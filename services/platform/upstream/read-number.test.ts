import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestUpstream, type TestUpstream, unknownObject, type UpstreamAnswer } from '../testing/upstream.ts'
import { listNumbers } from './list-numbers.ts'
import { numberFields, readNumber } from './read-number.ts'
import { createUpstream, type Upstream } from '@app/shared/outside/upstream.ts'

const phoneNumberId = '106540352242922'
let platform: TestUpstream
let upstream: Upstream

beforeAll(async () => {
  platform = await startTestUpstream()
  upstream = createUpstream({
    UPSTREAM_BASE_URL: `${platform.url}/`,
    UPSTREAM_API_VERSION: 'v23.0',
    UPSTREAM_APP_ID: '1234567890',
    UPSTREAM_KEEPALIVE_MS: 1_000,
    UPSTREAM_SUBSCRIBE_APPS: true,
  })
})
afterAll(async () => {
  await upstream.close()
  await platform.close()
})

function read(answer: UpstreamAnswer, token = 'EAAtoken', waitMs = 5_000) {
  platform.answers.set(`/${phoneNumberId}`, answer)
  return readNumber(upstream, { phoneNumberId, token }, performance.now() + waitMs)
}

const error = (code: number, more: object = {}) => ({ error: { message: 'No.', code, ...more } })

test('a token that is no header value is refused before anybody is asked', async () => {
  platform.asked.length = 0
  for (const token of ['EAA\r\nX-Evil: 1', 'two words', 'ключ']) {
    await expect(read({ body: {} }, token)).rejects.toMatchObject({
      failure: 'invalid_field_value',
      param: 'access_token',
    })
  }
  expect(platform.asked).toEqual([])
})

const refusals: [string, UpstreamAnswer, string | undefined][] = [
  ['a token that is invalid', { status: 401, body: error(190) }, 'access_token'],
  ['an invalid token with another status', { status: 400, body: error(190) }, 'access_token'],
  ['a 401 of any shape', { status: 401, body: 'no' }, 'access_token'],
  ['a token for another number', { status: 403, body: error(10) }, 'access_token'],
  ['a missing permission', { status: 403, body: error(200) }, 'access_token'],
  ['a missing capability, though a 500', { status: 500, body: error(3) }, 'access_token'],
  ['an unknown number', { status: 400, body: unknownObject }, 'phone_number_id'],
  ['a deleted number', { status: 400, body: error(33) }, 'phone_number_id'],
  [
    'a token of another app, which our proof does not fit',
    { status: 400, body: error(100, { message: 'Invalid appsecret_proof provided in the API argument' }) },
    undefined,
  ],
  ['any other refusal', { status: 400, body: error(100) }, undefined],
]
test.each(refusals)('is refused for good: %s', async (_, answer, param) => {
  await expect(read(answer)).rejects.toMatchObject({ failure: 'upstream_refused', param })
})

const failures: [string, UpstreamAnswer][] = [
  ['too many calls, though a 400', { status: 400, body: error(80007) }],
  ['a service that is down', { status: 503, body: error(2) }],
  ['an unknown code of a 500', { status: 500, body: error(999_999) }],
  ["a proxy's 502", { status: 502, body: '<html>' }],
  ['a page instead of an answer', { body: '<html>' }],
  ["another number's answer", { body: { id: '1' } }],
  ['an endless answer', { body: 'x'.repeat(2 ** 21) }],
  ['a connection that breaks', 'hang up'],
]
test.each(failures)('is not available: %s', async (_, answer) => {
  await expect(read(answer)).rejects.toMatchObject({ failure: 'upstream_unavailable' })
})

test('is not available when it is silent until the deadline', async () => {
  const startedAt = performance.now()
  await expect(read('silence', 'EAAtoken', 150)).rejects.toMatchObject({ failure: 'upstream_unavailable' })
  expect(performance.now() - startedAt).toBeLessThan(4_000)
})

test("a refusal is told in the upstream's own words, the most precise ones", async () => {
  const data = { error_data: { messaging_product: 'whatsapp', details: 'The number is frozen' } }
  await expect(read({ status: 400, body: error(100, data) })).rejects.toThrow('The number is frozen')
  await expect(read({ status: 400, body: error(100) })).rejects.toThrow('No.')
})

test('the bearer does not follow a redirect', async () => {
  platform.asked.length = 0
  await expect(read({ status: 302, body: '', location: '/elsewhere' })).rejects.toMatchObject({
    failure: 'upstream_unavailable',
  })
  expect(platform.asked).toHaveLength(1)
})

test('the numbers of a business account are read page by page, and no URL of an answer is followed', async () => {
  const page = `/900900/phone_numbers?fields=${numberFields}&limit=100`
  const paging = { next: `${platform.url}/elsewhere`, cursors: { after: 'a b' } }
  platform.answers.set(page, { body: { data: [{ id: '1' }], paging } })
  platform.answers.set(`${page}&after=a%20b`, {
    body: { data: [{ id: '2', is_on_biz_app: true }], paging: { cursors: {} } },
  })
  const account = { businessAccountId: '900900', token: 'EAAtoken' }
  const numbers = await listNumbers(upstream, account, performance.now() + 5_000)
  expect(numbers).toMatchObject([
    { phoneNumberId: '1', isInBusinessApp: false },
    { phoneNumberId: '2', isInBusinessApp: true },
  ])
})
