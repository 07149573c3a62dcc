import type { Answer, Input } from '@app/shared/api/contract.ts'
import { beginSetup, completeSetup, getSetup } from '@app/shared/contracts/onboarding.ts'
import { newId } from '@app/shared/values/ids.ts'
import { notFound, Problem } from '@app/shared/api/problem.ts'
import { serve, type Serving } from '@app/shared/bus/rpc.ts'
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { mostDelayMs } from '../http.ts'
import { startTestGateway, type TestGateway } from '../testing/gateway.ts'
import { beLate } from '../testing/late.ts'
import { logLines } from '../testing/log-lines.ts'
import { nameOf } from './setup-cookie.ts'
import { setupPage } from './setup-pages.ts'
import type { Signup } from './signup-settings.ts'

const token = 'Zp0mJbHc1S5rKq0e3oZkq0G5w5m8n2x7c9v1b3nx7Qk'
const linkId = newId('csl')
let gateway: TestGateway
let platform: Serving
let setup: Answer<typeof getSetup>
let completed: Array<Input<typeof completeSetup>['body']>
let complete: () => Promise<Answer<typeof completeSetup>>

const number = {
  phone_number_id: '106540352242922',
  phone_number: '+1 555 078 3881',
  name: 'Bakery',
  registered: false,
}

beforeAll(async () => {
  gateway = await startTestGateway()
  platform = await serve(
    { ...gateway.peer, name: 'platform' },
    { getSetup, beginSetup, completeSetup },
    {
      getSetup: (_app, { body }) => (body.token === token ? Promise.resolve(setup) : Promise.reject(notFound())),
      beginSetup: () => Promise.resolve({ state: 'state-1' }),
      completeSetup: (_app, { body }) => {
        completed.push(body)
        return complete()
      },
    },
  )
})
beforeEach(() => {
  setup = {
    setup_link_id: linkId,
    state: 'active',
    organization_name: 'Acme <b>"Inc"</b>',
    customer_name: "Bruno's & Söhne",
    expires_at: '2026-03-08T12:00:00.000Z',
    success_url: null,
    cancelled_url: 'https://app.example/failed?status=cancelled',
    failed_url: null,
    number: null,
  }
  completed = []
  complete = () => Promise.resolve({ number, success_url: null })
})
afterAll(async () => {
  await platform.stop()
  await gateway.close()
})

const cookie = `other=1; svc_setup=${token}`
const load = (headers: Record<string, string> = { cookie }) => gateway.ask('/setup', { headers })

const dialog = {
  state: 'state-1',
  code: 'AQ',
  event: 'number',
  business_account_id: '900900',
  phone_number_id: '106540352242922',
}
const own = { cookie, origin: 'https://setup.example', host: 'setup.example', 'content-type': 'application/json' }
const post = (path: string, body: object, headers: Record<string, string> = own) => gateway.ask(path, { body, headers })

test('the link keeps its token in a cookie that no script and no other site gets, and leads to the page', async () => {
  const answer = await gateway.ask(`/setup/${token}`)
  expect(answer.status).toBe(303)
  expect(answer.headers).toMatchObject({
    location: `../setup?link=${nameOf(token)}`,
    'set-cookie': `svc_setup=${token}; Path=/chat/setup; HttpOnly; SameSite=Lax; Secure`,
    'referrer-policy': 'no-referrer',
    'cache-control': 'no-store',
  })
  const withSlash = await gateway.ask(`/setup/${token}/?from=mail`)
  expect([withSlash.status, withSlash.headers['location']]).toEqual([303, `../../setup?link=${nameOf(token)}`])
  for (const path of ['/setup/short', '/setup/', `/setup/${token}/more`]) {
    expect(await gateway.ask(path)).toMatchObject({
      status: 404,
      headers: { 'content-type': 'text/html; charset=utf-8' },
    })
  }
  expect((await gateway.ask('/setup/a%0d%0aSet-Cookie:x')).headers).not.toHaveProperty('set-cookie')
})

test('a link that a mail program has broken, so that it does not decode, says so on a page', async () => {
  for (const [path, file] of [
    [`/setup/${token}%94`, 'page.css'],
    ['/setup/%zz/', '../page.css'],
  ] as const) {
    const { status, headers, bytes } = await gateway.ask(path)
    expect([status, headers['content-type'], headers['cache-control']]).toEqual([
      404,
      'text/html; charset=utf-8',
      'no-store',
    ])
    expect(bytes.toString()).toContain('<h1>This link does not work</h1>')
    expect(bytes.toString()).toContain(`href="${file}"`)
  }
  expect((await gateway.ask('/v1/%zz')).headers['content-type']).toMatch('application/json')
})

test('a link of thirty thousand slashes costs no more than any other', async () => {
  const took: number[] = []
  for (let n = 0; n < 5; n++) {
    const began = performance.now()
    expect((await gateway.ask(`/setup/${'/'.repeat(30_000)}x`)).status).toBe(404)
    took.push(performance.now() - began)
  }
  expect(Math.min(...took)).toBeLessThan(300)
})

test('who checks the link with HEAD is told what GET would say, without the page', async () => {
  const head = (path: string, headers = {}) => gateway.ask(path, { method: 'HEAD', headers })
  expect(await head(`/setup/${token}`)).toMatchObject({
    status: 303,
    headers: { location: `../setup?link=${nameOf(token)}` },
  })
  expect((await head('/setup/short')).status).toBe(404)
  const [page, whole] = [await head('/setup', { cookie }), await load()]
  expect([page.status, page.bytes.length]).toEqual([200, 0])
  expect(page.headers['content-length']).toBe(String(whole.bytes.length))
})

test('the page says who asks whom, and holds no text of theirs as markup, nor the token', async () => {
  const answer = await load()
  const page = answer.bytes.toString()
  expect(answer.status).toBe(200)
  expect(page).toContain('Connect your number to Acme &lt;b&gt;&quot;Inc&quot;&lt;/b&gt;')
  expect(page).toContain('For Bruno&#39;s &amp; Söhne')
  expect(page).toContain('8 March 2026 at 12:00 UTC')
  expect(page).not.toContain(token)
  expect(page).not.toMatch(/<script(?![^>]* src=)|<style|\son\w+=|\{\{/)
})

test('a name that is written from right to left, or turns what follows, stays together in our sentences', async () => {
  setup = { ...setup, organization_name: 'مخبز (٢)!', customer_name: 'Bruno\u202E\u2066' }
  const page = (await load()).bytes.toString()
  expect(page).toContain('Connect your number to \u2068مخبز (٢)!\u2069</h1>')
  expect(page).toContain('data-organization="\u2068مخبز (٢)!\u2069"')
  expect(page).toContain('For Bruno</p>')
  setup = { ...setup, state: 'revoked' }
  expect((await load()).bytes.toString()).toContain('Please ask \u2068مخبز (٢)!\u2069 for a new one.')
})

test("the policy allows our own files and the platform's script and dialog, exactly, and nobody's frame", async () => {
  const policy = (await load()).headers['content-security-policy']
  const dialogs = 'https://dialog.example https://web.dialog.example'
  expect(String(policy).split('; ')).toEqual([
    "default-src 'none'",
    "script-src 'self' https://connect.example",
    "style-src 'self'",
    'img-src data:',
    `connect-src 'self' ${dialogs}`,
    `frame-src ${dialogs}`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ])
  setup = { ...setup, state: 'expired' }
  expect((await load()).headers['content-security-policy']).not.toContain('example')
})

test.each([
  ['expired', 410, 'This link has expired'],
  ['revoked', 410, 'This link was withdrawn'],
  ['refused', 403, 'No number can be connected at the moment'],
] as const)('a link that is %s says so', async (state, status, words) => {
  setup = { ...setup, state }
  const answer = await load()
  expect([answer.status, answer.bytes.toString()]).toEqual([status, expect.stringContaining(words)])
  expect(answer.bytes.toString()).not.toContain('page.js')
})

test('everything under /setup keeps out of frames, of searches and of what other sites learn', async () => {
  const paths = ['/setup', `/setup/${token}`, '/setup/short', '/setup/page.css', '/setup/page.js']
  const answers = await Promise.all(paths.map((path) => gateway.ask(path, { headers: { cookie } })))
  answers.push(await post('/setup/begin', { setup_link_id: linkId }), await post('/setup/begin', {}, {}))
  for (const { headers } of answers) {
    expect(headers).toMatchObject({
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'x-frame-options': 'DENY',
      'x-robots-tag': 'noindex',
      'cross-origin-opener-policy': 'same-origin-allow-popups',
      'permissions-policy': 'camera=(), microphone=(), geolocation=()',
      'content-security-policy': expect.stringMatching(
        /^default-src 'none'; .*; frame-src .*; frame-ancestors 'none'$/,
      ),
      'content-type': expect.stringMatching(/; charset=utf-8$/),
    })
  }
  const kept = answers.map(({ headers }) => headers['cache-control'])
  expect(kept).toEqual(
    paths.map((path) => (/css|js/.test(path) ? 'public, max-age=300' : 'no-store')).concat('no-store', 'no-store'),
  )
})

test('where the service has no signup configuration the page says so', () => {
  const page = setupPage(setup, { configId: undefined } as Signup)
  expect(page).toMatchObject({ status: 503, opensDialog: false })
  expect(page.body.toString()).toContain('Numbers cannot be connected here yet')
})

test('a used link tells the end of its number alone, and leads back', async () => {
  setup = { ...setup, state: 'consumed', number, success_url: 'https://app.example/ok?a=1&status=success' }
  const page = (await load()).bytes.toString()
  expect(page).toContain('The number that ends in 3881 was connected')
  expect(page).not.toContain('555 078')
  expect(page).toContain('href="https://app.example/ok?a=1&amp;status=success"')
  expect(page).not.toContain('hidden')
  setup = { ...setup, number: { ...number, registered: true }, success_url: null }
  const registered = await load()
  expect([registered.status, registered.bytes.toString()]).toEqual([410, expect.stringContaining('3881 is connected')])
  expect(registered.bytes.toString()).toContain('<p hidden>')
  setup = { ...setup, number: { ...number, phone_number: null } }
  expect((await load()).bytes.toString()).toContain('A number was connected')
})

test('without a cookie, with a strange one and with an unknown token it asks for the link', async () => {
  const words = async (headers: Record<string, string>) => {
    const { status, bytes } = await load(headers)
    return [status, /<h1>(.*)<\/h1>/.exec(bytes.toString())?.[1]]
  }
  expect(await words({})).toEqual([404, 'Please open your link again'])
  expect(await words({ cookie: 'svc_setup=<script>' })).toEqual([404, 'Please open your link again'])
  expect(await words({ cookie: `svc_setup=${'x'.repeat(43)}` })).toEqual([404, 'This link does not work'])
})

test('below a path that a proxy takes away, each page finds its files', async () => {
  for (const path of [`/setup`, '/setup/short', '/setup/one/more/']) {
    const { bytes } = await gateway.ask(path, { headers: { cookie } })
    const files = bytes.toString().matchAll(/(?:href|src)="([^"]*\/?page\.(?:css|js))"/g)
    const found = [...files].map(([, file]) => new URL(file ?? '', `https://setup.example/chat${path}`).pathname)
    expect(found).toContain('/chat/setup/page.css')
    expect(found.every((file) => file.startsWith('/chat/setup/page.'))).toBe(true)
  }
})

test('its files come with their types and may be kept for a while', async () => {
  for (const [path, type] of [
    ['/setup/page.css', 'text/css; charset=utf-8'],
    ['/setup/page.js', 'text/javascript; charset=utf-8'],
  ]) {
    const { status, headers } = await gateway.ask(path ?? '')
    expect([status, headers['content-type'], headers['cache-control']]).toEqual([200, type, 'public, max-age=300'])
    expect(headers['x-content-type-options']).toBe('nosniff')
  }
})

test("the script's questions carry the cookie's token, whatever their body says", async () => {
  const begun = await post('/setup/begin', { setup_link_id: linkId })
  expect([begun.status, begun.json().data]).toEqual([200, { state: 'state-1' }])
  const answer = await post('/setup/complete', { ...dialog, token: 'another-token-another-token-another' })
  expect([answer.status, answer.json().data]).toEqual([200, { number, success_url: null }])
  expect(completed).toEqual([{ ...dialog, token }])
})

test('where a browser has two links open, each page and its questions are of its own', async () => {
  const newest = 'another-token-another-token-another'
  const opened = await gateway.ask(`/setup/${newest}`, { headers: { cookie } })
  const [both = ''] = String(opened.headers['set-cookie']).split(';')
  const headers = { ...own, cookie: both }
  const page = (path: string) => gateway.ask(path, { headers })
  const [first, second] = [`?link=${nameOf(token)}`, `?link=${nameOf(newest)}`]
  expect([(await page(`/setup${first}`)).status, (await page(`/setup${second}`)).status]).toEqual([200, 404])
  expect((await page('/setup')).status).toBe(404)
  for (const link of [first, second]) await post(`/setup/complete${link}`, dialog, headers)
  expect(completed).toMatchObject([{ token }, { token: newest }])
  expect((await post('/setup/complete?link=0123456789abcdef', dialog, headers)).status).toBe(404)
  expect((await post('/setup/complete?link=a&link=b', dialog, headers)).status).toBe(200)
})

test('another site’s page, a form and a request without the cookie change nothing', async () => {
  const { cookie: _, ...without } = own
  const { origin: __, ...withoutOrigin } = own
  for (const [headers, status] of [
    [{ ...own, origin: 'https://evil.example' }, 400],
    [{ ...own, origin: 'null' }, 400],
    [{ ...own, origin: 'https://setup.example:8443' }, 400],
    [{ ...own, origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' }, 400],
    [{ ...own, origin: 'https://evil.setup.example', 'sec-fetch-site': 'same-site' }, 400],
    [withoutOrigin, 400],
    [{ ...withoutOrigin, 'sec-fetch-site': 'none' }, 400],
    [{ ...own, 'content-type': 'text/plain' }, 400],
    [without, 404],
  ] as const) {
    expect((await post('/setup/complete', dialog, headers)).status).toBe(status)
  }
  expect(completed).toEqual([])
})

test('what fails is told by its code, and a body that is none is refused', async () => {
  complete = () => Promise.reject(new Problem('setup_in_progress'))
  const busy = await post('/setup/complete', dialog)
  expect([busy.status, busy.json().error.code]).toEqual([409, 'setup_in_progress'])
  for (const body of ['', '[', '[]', '{}', 'null']) {
    const answer = await gateway.ask('/setup/complete', { body, headers: own })
    expect([answer.status, answer.json().error.code]).toEqual([400, 'invalid_field_value'])
  }
  const large = await gateway.ask('/setup/complete', { body: JSON.stringify({ x: 'x'.repeat(20_000) }), headers: own })
  expect(large.status).toBe(413)
  expect(gateway.app.inFlight).toMatchObject({ bytes: 0, count: 0 })
})

test('what fails on our side is told of in the log, and what strangers get wrong is not', async () => {
  const lines = logLines(gateway.app)
  const told = () => lines.filter((line) => 'err' in line)
  await load({ cookie: `svc_setup=${'x'.repeat(43)}` })
  await post('/setup/begin', {}, {})
  expect(told()).toEqual([])
  const during = vi.spyOn(gateway.app.inFlight, 'during').mockRejectedValue(new Error('a fault of ours'))
  const [page, answer] = [await load(), await post('/setup/begin', { setup_link_id: linkId })]
  during.mockRestore()
  expect([page.status, page.headers['retry-after'], answer.status]).toEqual([503, '1', 500])
  expect(told()).toMatchObject(
    ['setup page', 'setup'].map((msg) => ({ level: 'warn', msg, err: new Error('a fault of ours') })),
  )
  vi.restoreAllMocks()
})

test('too many requests in work are a 503, here too', async () => {
  gateway.app.inFlight.count += 4_096
  const answers = [await load(), await post('/setup/begin', { setup_link_id: linkId })]
  gateway.app.inFlight.count -= 4_096
  for (const { status, headers } of answers) expect([status, headers['retry-after']]).toEqual([503, '1'])
})

test('a visitor who is turned away because the event loop is late sees a page, and what costs as little is there', async () => {
  const strict = await startTestGateway({ maxEventLoopDelay: mostDelayMs })
  onTestFinished(() => strict.close())
  const lines = logLines(strict.app)
  await beLate()
  const ask = (path: string, method: 'GET' | 'HEAD' | 'POST' = 'GET') =>
    strict.ask(path, { method, headers: own, ...(method === 'POST' && { body: { setup_link_id: linkId } }) })
  await expect.poll(async () => (await ask('/v1/me')).status, { interval: 5 }).toBe(503)
  const away = { 'retry-after': '1', 'referrer-policy': 'no-referrer', 'cache-control': 'no-store' }
  const [page, begun] = [await ask('/setup'), await ask('/setup/begin', 'POST')]
  expect(page).toMatchObject({ status: 503, headers: { ...away, 'content-type': 'text/html; charset=utf-8' } })
  expect(page.bytes.toString()).toContain('Your link is fine.')
  expect(begun).toMatchObject({ status: 503, headers: away })
  expect(begun.json().error.code).toBe('service_unavailable')
  const open = [await ask(`/setup/${token}`), await ask(`/setup/${token}`, 'HEAD')]
  expect(open.map(({ status }) => status)).toEqual([303, 303])
  const files = [await ask('/setup/page.css'), await ask('/setup/page.js')]
  expect(files.map(({ status }) => status)).toEqual([200, 200])
  const late = expect.objectContaining({ message: 'the event loop is late' })
  for (const msg of ['setup page', 'setup']) expect(lines).toContainEqual({ level: 'warn', msg, err: late })
  await expect.poll(() => lines).toContainEqual(expect.objectContaining({ msg: 'http', route: '/setup', status: 503 }))
  vi.restoreAllMocks()
})

test('a question to begin that is lost with its process is asked again, and one that completes is not', async () => {
  const { nc } = gateway.peer
  let lost = 0
  nc.subscribe(beginSetup.subject, { queue: 'platform', max: 1, callback: () => void lost++ })
  await nc.flush()
  while (lost === 0) expect((await post('/setup/begin', { setup_link_id: linkId })).status).toBe(200)
  expect(completeSetup.repeatable).toBeUndefined()
})

test('a network that asks too often waits', async () => {
  const headers = { cookie, 'x-forwarded-for': '2001:db8::1' }
  const lines = logLines(gateway.app)
  const statuses = await Promise.all(
    Array.from({ length: 150 }, async (_, n) => {
      const ofNetwork = { ...headers, 'x-forwarded-for': `2001:db8::${n}` }
      return (await gateway.ask('/setup', { headers: ofNetwork })).status
    }),
  )
  expect(lines.filter((line) => 'err' in line)).toEqual([])
  vi.restoreAllMocks()
  // The budget refills while they come in.
  const admitted = statuses.filter((status) => status === 200).length
  expect(admitted).toBeGreaterThanOrEqual(120)
  expect(admitted).toBeLessThan(140)
  expect(new Set(statuses)).toEqual(new Set([200, 429]))
  const begin = () => gateway.ask('/setup/begin', { body: { setup_link_id: linkId }, headers: { ...own, ...headers } })
  const answers = await Promise.all(Array.from({ length: 20 }, begin))
  expect(answers.find(({ status }) => status === 429)?.headers['retry-after']).toBe('1')
})
