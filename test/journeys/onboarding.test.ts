import type { Browser, Page } from 'playwright-core'
import postgres from 'postgres'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { chromiumPath, launch, whyNoBrowser } from '../browser.ts'
import { admin } from './admin.ts'
import { client, type Json, newPhone, until } from './client.ts'
import { type Receiver, startReceiver } from './receiver.ts'
import { visit } from './visit.ts'

const { api, control } = client()
const redirects = {
  success_redirect_url: 'https://app.example/connected?from=setup',
  failure_redirect_url: 'https://app.example/failed',
}
let browser: Browser
let receiver: Receiver

if (chromiumPath === undefined) console.log(whyNoBrowser)

beforeAll(async () => {
  receiver = await startReceiver()
  const events = [
    'customer.created',
    'customer.setup_link.created',
    'customer.onboarded',
    'customer.setup_link.consumed',
  ]
  const body = { url: receiver.url, events: [...events, 'message.received', 'message.sent', 'message.status'] }
  expect((await api('POST', '/webhook_subscriptions', { body })).status).toBe(201)
  if (chromiumPath !== undefined) browser = await launch()
})
afterAll(async () => {
  await browser?.close()
  receiver.close()
})

async function newLink(body: object = {}, customer: Json = null, key = inject('stack').api_key) {
  const of = customer ?? (await api('POST', '/customers', { body: { name: 'Bakery Bruno & Söhne' } })).body.data
  const created = await api('POST', `/customers/${of.id}/setup_links`, { key, body })
  expect(created.status).toBe(201)
  return { customer: of, link: created.body.data }
}

/** Clicks, and goes through the simulated dialog of the platform. */
async function connect(page: Page, { choice = 'number', button = '#finish' } = {}) {
  const [dialog] = await Promise.all([page.waitForEvent('popup'), page.click('#connect')])
  await dialog.check(`input[value=${choice}]`)
  await clickAway(dialog, button)
}

/** Clicks what closes the window: that it is closed may be known before that it was clicked. */
async function clickAway(window: Page | undefined, button: string) {
  await window?.click(button).catch((err: unknown) => {
    if (!window.isClosed()) throw err
  })
}

const title = (page: Page) => page.locator('h1:visible').textContent()
const waitForTitle = (page: Page, text: string) => until(async () => expect(await title(page)).toBe(text))

const account = async (customerId: string) =>
  (await api('GET', `/accounts?status=all&customer_id=${customerId}`)).body.data[0]

describe.skipIf(chromiumPath === undefined)('the hosted page', () => {
  test('A customer goes, in the browser, from link to first message through their own number; the organization’s webhooks tell the story in order', async () => {
    const { customer, link } = await newLink(redirects)
    const { page, complaints } = await visit(browser, link.setup_url)
    expect(new URL(page.url()).pathname).toBe('/setup')
    expect(await title(page)).toBe('Connect your number to Demo')
    expect(await page.textContent('main')).toContain('Bakery Bruno & Söhne')
    await connect(page)
    await page.waitForURL('https://app.example/**')
    const onboarding = await account(customer.id)
    expect(onboarding).toMatchObject({ status: 'onboarding', upstream_status: 'PENDING', customer_id: customer.id })
    const phone = onboarding.phone_number_id
    expect(Object.fromEntries(new URL(page.url()).searchParams)).toEqual({
      from: 'setup',
      customer_id: customer.id,
      setup_link_id: link.id,
      status: 'success',
      phone_number_id: phone,
    })
    expect(complaints).toEqual([])

    const from = newPhone()
    const text = (words: string) =>
      api('POST', `/${phone}/messages`, {
        body: { messaging_product: 'chat', to: from, type: 'text', text: { body: words } },
      })
    expect(await text('Too early')).toMatchObject({
      status: 422,
      body: { error: { code: 'chat_number_not_verified' } },
    })
    const registered = await api('POST', `/${phone}/register`, { body: { pin: '482916' } })
    expect(registered).toMatchObject({
      status: 200,
      body: { data: { status: 'connected', upstream_status: 'CONNECTED' } },
    })

    await control('/control/inbound', {
      phone_number_id: phone,
      message: { from: from.slice(1), type: 'text', text: { body: 'Do you have bread?' } },
    })
    await until(() => expect(storyOf(receiver, customer.id, phone)).toContain('message.received'))
    expect((await text('Fresh from the oven')).status).toBe(200)
    await until(() => expect(storyOf(receiver, customer.id, phone)).toContain('message.sent'))
    expect(storyOf(receiver, customer.id, phone).slice(0, 5)).toEqual([
      'customer.created',
      'customer.setup_link.created',
      'customer.onboarded',
      'customer.setup_link.consumed',
      'message.received',
    ])
    const onboarded = receiver.of('customer.onboarded').find(({ body }) => body.data.customer_id === customer.id)
    expect(onboarded?.body.data).toEqual({
      customer_id: customer.id,
      account_id: expect.stringMatching(/^acc_/),
      phone_number_id: phone,
      phone_number: expect.stringMatching(/^\+1 555/),
    })
    await page.context().close()
  })

  test('back in the history, and opened again, a used link says so and leads on', async () => {
    const { customer, link } = await newLink({ success_redirect_url: redirects.success_redirect_url })
    const { page } = await visit(browser, link.setup_url)
    await connect(page, { choice: 'registered' })
    await page.waitForURL('https://app.example/**')
    await page.goBack()
    await waitForTitle(page, 'This link has been used')
    const { phone_number_id } = await account(customer.id)
    expect(await page.getAttribute('a.button', 'href')).toContain(`phone_number_id=${phone_number_id}`)
    const again = await page.goto(link.setup_url)
    expect(again?.status()).toBe(410)
    await page.context().close()
  })

  test('without a redirect the page says what became of the number, to a screen reader too', async () => {
    for (const [choice, words] of [
      ['number', 'Almost done: the number is pending'],
      ['registered', 'Your number is connected'],
      ['account_only', 'Almost done'],
      ['business_app', 'Your number is connected'],
    ] as const) {
      const { page } = await visit(browser, (await newLink()).link.setup_url, { viewport: { width: 375, height: 700 } })
      await connect(page, { choice })
      await waitForTitle(page, words)
      expect(await page.evaluate('document.activeElement.textContent')).toBe(words)
      expect(await page.title()).toBe(words)
      await page.context().close()
    }
  })

  test('cancelled: back to the organization, or here to try again; the link stays good', async () => {
    const { customer, link } = await newLink(redirects)
    const { page } = await visit(browser, link.setup_url)
    await connect(page, { button: '#cancel' })
    await page.waitForURL('https://app.example/**')
    expect(page.url()).toBe(
      `https://app.example/failed?customer_id=${customer.id}&setup_link_id=${link.id}&status=cancelled`,
    )
    await page.context().close()

    const plain = await newLink()
    const { page: other } = await visit(browser, plain.link.setup_url)
    await connect(other, { button: '#cancel' })
    await waitForTitle(other, 'Nothing was connected')
    await other.click('#again')
    await connect(other, { choice: 'registered' })
    await waitForTitle(other, 'Your number is connected')
    await other.context().close()
  })

  test('a closed window is a cancelled one, and a failed dialog says why', async () => {
    const { page } = await visit(browser, (await newLink()).link.setup_url)
    const [dialog] = await Promise.all([page.waitForEvent('popup'), page.click('#connect')])
    await dialog.close()
    await waitForTitle(page, 'Nothing was connected')
    expect(await page.textContent('#failed-text')).toContain('If none opened, allow pop-ups.')
    await page.click('#again')
    await connect(page, { button: '#error' })
    await waitForTitle(page, 'The number could not be connected')
    const text = 'Your number is already in use elsewhere. You can try again. If that does not help, please ask Demo.'
    expect(await page.textContent('#failed-text')).toBe(text)
    await page.context().close()
  })

  test('where the platform’s script is blocked, the page says so', async () => {
    const { link } = await newLink()
    const { page } = await visit(browser, 'about:blank')
    await page.route('**/signup/sdk.js', (route) => route.abort())
    await page.goto(link.setup_url)
    await waitForTitle(page, 'The platform’s window is not available')
    await page.context().close()
  })

  test('a double click opens one window', async () => {
    const { page } = await visit(browser, (await newLink()).link.setup_url)
    const windows: Page[] = []
    page.on('popup', (popup) => windows.push(popup))
    await page.dblclick('#connect')
    await until(() => expect(windows).toHaveLength(1))
    await clickAway(windows[0], '#finish')
    await waitForTitle(page, 'Almost done: the number is pending')
    expect(windows).toHaveLength(1)
    await page.context().close()
  })

  test('on a phone the page begins at its top, and what to do next is in sight', async () => {
    const { link } = await newLink()
    const { page } = await visit(browser, link.setup_url, { viewport: { width: 375, height: 600 } })
    await page.waitForSelector('#connect:enabled')
    expect(await page.evaluate('scrollY')).toBe(0)
    await clickAtBottom(page)
    await until(async () => expect(await bottomOf(page, '#status')).toBeLessThanOrEqual(601))
    await page.context().close()
  })

  test('the keyboard alone is enough', async () => {
    const { page } = await visit(browser, (await newLink()).link.setup_url)
    await page.waitForSelector('#connect:enabled')
    await page.keyboard.press('Tab')
    const [dialog] = await Promise.all([page.waitForEvent('popup'), page.keyboard.press('Enter')])
    await dialog.waitForSelector('#finish')
    await dialog.focus('#finish')
    await dialog.keyboard.press('Enter')
    await waitForTitle(page, 'Almost done: the number is pending')
    await page.context().close()
  })

  test('an expired, a revoked, an unknown link and a suspended customer say so', async () => {
    const [expired, revoked, suspended] = [await newLink(), await newLink(), await newLink()]
    const sql = postgres(inject('stack').postgres_url, { max: 1 })
    await sql`update platform.setup_links set expires_at = now() where id = ${expired.link.id}`
    await sql.end()
    await api('DELETE', `/customers/${revoked.customer.id}/setup_links/${revoked.link.id}`)
    await api('PATCH', `/customers/${suspended.customer.id}`, { body: { status: 'suspended' } })
    const unknown = expired.link.setup_url.replace(/[^/]{10}$/, 'unknown-00')
    for (const [url, words] of [
      [expired.link.setup_url, 'This link has expired'],
      [revoked.link.setup_url, 'This link was withdrawn'],
      [unknown, 'This link does not work'],
      [suspended.link.setup_url, 'No number can be connected at the moment'],
    ]) {
      const { page } = await visit(browser, url ?? '')
      expect(await title(page)).toBe(words)
      expect(await page.locator('#connect').count()).toBe(0)
      await page.context().close()
    }
  })

  test('a link that is revoked while its page is open ends there', async () => {
    const { customer, link } = await newLink()
    const { page } = await visit(browser, link.setup_url)
    const [dialog] = await Promise.all([page.waitForEvent('popup'), page.click('#connect')])
    await dialog.waitForSelector('#finish')
    await api('DELETE', `/customers/${customer.id}/setup_links/${link.id}`)
    await clickAway(dialog, '#finish')
    await waitForTitle(page, 'This link was withdrawn')
    await page.context().close()
  })
})

test.skipIf(chromiumPath === undefined)(
  'loaded anew while the number is being connected, the page goes on with it',
  async () => {
    const { page } = await visit(browser, (await newLink()).link.setup_url)
    await page.waitForSelector('#connect:enabled')
    await control('/control/faults', { match: { path: '/oauth/access_token' }, fault: { kind: 'delay', ms: 3_000 } })
    await Promise.all([page.waitForRequest('**/setup/complete*'), connect(page)])
    await page.reload()
    expect(await page.textContent('#status')).toBe('One moment: your number is being connected …')
    await waitForTitle(page, 'Almost done: the number is pending')
    await page.context().close()
  },
)

test.skipIf(chromiumPath === undefined)(
  'where another link was opened meanwhile, each connects its own number, also after it was loaded anew',
  async () => {
    const [first, second] = [await newLink(), await newLink()]
    const { page } = await visit(browser, first.link.setup_url)
    await page.waitForSelector('#connect:enabled')
    const other = await page.context().newPage()
    await other.goto(second.link.setup_url)
    await connect(page)
    await waitForTitle(page, 'Almost done: the number is pending')
    expect(await account(first.customer.id)).toBeDefined()
    expect(await account(second.customer.id)).toBeUndefined()
    await page.reload()
    expect(await title(page)).toBe('This link has been used')
    await connect(other)
    await waitForTitle(other, 'Almost done: the number is pending')
    expect(await account(second.customer.id)).toBeDefined()
    await page.context().close()
  },
)

test.skipIf(chromiumPath === undefined)('where the cookies are cleared meanwhile, the page says so', async () => {
  const { customer, link } = await newLink()
  const { page } = await visit(browser, link.setup_url)
  await page.waitForSelector('#connect:enabled')
  await page.context().clearCookies()
  await connect(page)
  await waitForTitle(page, 'Please open your link again')
  expect(await page.locator('#again').isVisible()).toBe(false)
  expect(await account(customer.id)).toBeUndefined()
  await page.context().close()
})

test.skipIf(chromiumPath === undefined)(
  'where the page’s own script does not come, the page says what to do; where it comes, nobody reads that',
  async () => {
    const { link } = await newLink()
    const { page } = await visit(browser, link.setup_url)
    await page.waitForSelector('#connect:enabled')
    expect(await page.textContent('#status')).toBe('')
    await page.route('**/setup/page.js', (route) => route.abort())
    await page.reload()
    const advice = page.getByText('If the button stays grey, please load this page again.')
    await page.evaluate('document.getAnimations().forEach((animation) => animation.finish())')
    expect(await advice.isVisible()).toBe(true)
    await page.context().close()
  },
)

test('a restriction that the platform reports stops sends, and its end lets them go again', async () => {
  const { customer, link } = await newLink()
  const phone = await onboardWithoutBrowser(link)
  await until(async () => expect(await account(customer.id)).toMatchObject({ status: 'connected' }))
  await control('/control/numbers', { phone_number_id: phone, status: 'RESTRICTED', tell: true })
  await until(async () => expect(await account(customer.id)).toMatchObject({ status: 'degraded' }))
  const send = () =>
    api('POST', `/${phone}/messages`, {
      body: { messaging_product: 'chat', to: newPhone(), type: 'text', text: { body: 'Hello' } },
    })
  // Nobody waited for the report: messaging has it some milliseconds after platform.
  await until(async () => expect((await send()).body.error.code).toBe('account_restricted'))
  await control('/control/numbers', { phone_number_id: phone, status: 'CONNECTED', tell: true })
  await until(async () => expect(await account(customer.id)).toMatchObject({ status: 'connected' }))
  await until(async () => expect((await send()).body.error.code).toBe('outside_24h_window'))
})

test.skipIf(chromiumPath === undefined)('a name of one long word stays on the page of a phone', async () => {
  const { id } = await admin('organization', 'create', '--name', 'Donau'.repeat(30))
  const { key } = await admin('key', 'create', '--organization', id, '--label', 'long')
  const { data: customer } = (await api('POST', '/customers', { key, body: { name: 'Dampf'.repeat(30) } })).body
  const { link } = await newLink({}, customer, key)
  const { page } = await visit(browser, link.setup_url, { viewport: { width: 375, height: 700 } })
  await page.waitForSelector('#connect:enabled')
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(375)
  await page.context().close()
})

test.skipIf(chromiumPath === undefined)(
  'a dialog that is not answered says so and goes on, a double click in it makes one number, and alone it says that it is done',
  async () => {
    const numbers = async () => (await control('/control/numbers', undefined, 'GET')).data.length
    const { page } = await visit(browser, (await newLink()).link.setup_url)
    const [dialog] = await Promise.all([page.waitForEvent('popup'), page.click('#connect')])
    await dialog.route('**/signup/finish', (route) => route.abort())
    await dialog.click('#finish')
    await dialog.getByText('That did not work: the simulator does not answer. Please try again.').waitFor()
    await dialog.unroute('**/signup/finish')
    const before = await numbers()
    await dialog.dblclick('#finish').catch(() => undefined)
    await waitForTitle(page, 'Almost done: the number is pending')
    expect(await numbers()).toBe(before + 1)

    await page.goto(`${inject('stack').simulator_url}/signup/dialog`)
    await page.click('#cancel')
    await page.getByText('Done: you can close this window.').waitFor()
    await page.context().close()
  },
)

test.skipIf(chromiumPath === undefined)('printed from a dark screen, the page is dark on white paper', async () => {
  const { page } = await visit(browser, (await newLink()).link.setup_url, { colorScheme: 'dark' })
  const colorOf = () => page.evaluate('getComputedStyle(document.body).color')
  expect(await colorOf()).toBe('rgb(236, 239, 243)')
  await page.emulateMedia({ media: 'print' })
  expect(await colorOf()).toBe('rgb(22, 25, 29)')
  await page.context().close()
})

test('registration: a wrong PIN, an unknown number and a malformed PIN are refused', async () => {
  const { phone_number_id: phone, status } = await control('/control/numbers', { status: 'PENDING' })
  expect(status).toBe('PENDING')
  const register = (id: string, pin: unknown) => api('POST', `/${id}/register`, { body: { pin } })
  expect((await register(phone, '123456')).status).toBe(404)
  const { customer, link } = await newLink()
  const own = await onboardWithoutBrowser(link, 'number')
  expect((await register(own, '12345')).body.error).toMatchObject({ code: 'invalid_field_value', param: 'pin' })
  await control('/control/faults', { match: { path: `/${own}/register` }, fault: { kind: 'error', code: 133_005 } })
  expect(await register(own, '111111')).toMatchObject({ status: 422, body: { error: { code: 'registration_failed' } } })
  await control('/control/faults', { match: { path: `/${own}/register` }, fault: { kind: 'error', code: 133_016 } })
  const tooOften = await register(own, '111111')
  expect(tooOften).toMatchObject({ status: 429, body: { error: { code: 'rate_limit_exceeded' } } })
  expect(Number(tooOften.headers['retry-after'])).toBeGreaterThan(0)
  expect(await account(customer.id)).toMatchObject({ status: 'onboarding' })
})

/** What page and dialog do between them, by HTTP alone. */
async function onboardWithoutBrowser(link: Json, choice = 'registered'): Promise<string> {
  const { setup_url: url, id } = link
  const opened = await fetch(url, { redirect: 'manual' })
  const cookie = (opened.headers.get('set-cookie') ?? '').split(';')[0] ?? ''
  const headers = { cookie, origin: new URL(url).origin, 'content-type': 'application/json' }
  const post = async (path: string, body: object): Promise<Json> => {
    const answer = await fetch(new URL(path, url), { method: 'POST', headers, body: JSON.stringify(body) })
    expect(answer.status).toBe(200)
    return ((await answer.json()) as Json).data
  }
  const { state } = await post('/setup/begin', { setup_link_id: id })
  const { code, data } = await control('/signup/finish', { choice })
  const ids = { business_account_id: data.waba_id, phone_number_id: data.phone_number_id }
  const { number } = await post('/setup/complete', { state, code, event: 'number', ...ids })
  return number.phone_number_id
}

/** The types of what the organization was told of a customer and of its number, in the order in which it came. */
function storyOf({ deliveries }: Receiver, customerId: string, phone: string) {
  return deliveries
    .filter(({ raw }) => raw.includes(customerId) || raw.includes(phone))
    .map(({ headers }) => headers['x-svc-event'])
}

/** With a pointer, the button being the last that is seen: Playwright's own click brings more of the page into sight. */
async function clickAtBottom(page: Page) {
  await page.evaluate(`document.getElementById('connect').scrollIntoView({ block: 'end' })`)
  const { x = 0, y = 0 } = (await page.locator('#connect').boundingBox()) ?? {}
  await Promise.all([page.waitForEvent('popup'), page.mouse.click(x + 20, y + 20)])
}

/** In pixels from the top of what is seen; scrolling ends at whole ones. */
async function bottomOf(page: Page, selector: string) {
  const { y = 0, height = 0 } = (await page.locator(selector).boundingBox()) ?? {}
  return y + height
}
