import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { chromiumPath, launch, whyNoBrowser } from '../../browser.ts'
import { person, startTrial } from '../trial.ts'
import { openPage } from './open-page.ts'

if (!chromiumPath) console.log(whyNoBrowser)

let browser: Browser
beforeAll(async () => {
  if (chromiumPath) browser = await launch()
})
afterAll(() => browser?.close())

const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=='

const buttons = {
  type: 'interactive',
  interactive: {
    type: 'button',
    header: { type: 'text', text: 'Your table' },
    body: { text: 'Shall we keep it?' },
    footer: { text: 'Until noon' },
    action: { buttons: ['Yes', 'No'].map((title) => ({ type: 'reply', reply: { id: title.toLowerCase(), title } })) },
  },
}

test.skipIf(!chromiumPath)('shows sends as they come, and plays the customer', async () => {
  const trial = await startTrial({ settings: { statuses: ['sent', 'delivered'], status_delay_ms: 5 } })
  const { receive, receiver, send, upload, number, url } = trial
  const hello = await receive(number, { text: { body: '<b>hello</b>' } })
  const { page, complaints } = await openPage(browser, url)
  const thread = page.locator('#thread li')
  await expect.poll(() => thread.allInnerTexts()).toEqual([expect.stringContaining('<b>hello</b>')])

  await send(number, { status: 'read', message_id: hello, typing_indicator: { type: 'text' } })
  await thread.getByText('read, and typing').waitFor()

  const { body: sent } = await send(number, buttons)
  const bubble = thread.filter({ hasText: 'Shall we keep it?' })
  await bubble.getByText('delivered').waitFor()
  await bubble.getByRole('button', { name: 'Yes' }).click()
  const tapped = { type: 'button_reply', button_reply: { id: 'yes', title: 'Yes' } }
  const context = { id: sent.messages?.[0]?.id }
  await expect.poll(() => receiver.messages().at(-1)).toMatchObject({ from: person, interactive: tapped, context })
  await thread.filter({ hasText: 'button_reply yes' }).waitFor()

  await bubble.getByRole('button', { name: 'mark read' }).click()
  await bubble.locator('small.status-read').waitFor()
  await expect.poll(() => receiver.statuses().at(-1)).toMatchObject({ ...context, status: 'read' })

  await makeTemplate(trial)
  await send(number, {
    type: 'template',
    template: {
      name: 'ready',
      language: { code: 'en_US' },
      components: [{ type: 'body', parameters: [{ type: 'text', text: 'Ana' }] }],
    },
  })
  await thread.filter({ hasText: 'Hi Ana, it is ready.' }).getByRole('button', { name: 'Coming' }).click()
  await expect
    .poll(() => receiver.messages().at(-1))
    .toMatchObject({ type: 'button', button: { text: 'Coming', payload: 'Coming' } })

  const { body: file } = await upload(number, { type: 'image/png', bytes: Buffer.from(pixel, 'base64') })
  await send(number, { type: 'image', image: { id: file['id'], caption: 'A picture' } })
  const picture = thread.filter({ hasText: 'A picture' }).locator('img')
  await expect.poll(() => picture.evaluate((image) => Reflect.get(image, 'naturalWidth') as number)).toBe(1)

  await page.getByLabel("Customer's name").fill('Ana')
  await page.getByLabel('Message').fill('Thank you')
  await page.getByLabel('Message').press('Enter')
  await expect.poll(() => receiver.messages().at(-1)).toMatchObject({ text: { body: 'Thank you' } })
  await page.getByLabel("Customer's number", { exact: true }).fill('4915112345678')
  await page.getByRole('button', { name: 'Open' }).click()
  await page.getByLabel('Message').fill('Guten Tag')
  await page.getByLabel('Message').press('Enter')
  await expect.poll(() => receiver.messages().at(-1)).toMatchObject({ from: '4915112345678' })
  await expect.poll(() => page.locator('#chats button').allInnerTexts()).toHaveLength(2)

  const shot = process.env['SCREENSHOT']
  if (shot) {
    await page.locator('#chats button').nth(1).click()
    await page.getByText('Thank you').last().waitFor()
    await page.screenshot({ path: shot })
  }
  expect(complaints).toEqual([])
})

test.skipIf(!chromiumPath)('fits the width of a phone', async () => {
  const { receive, number, url } = await startTrial()
  await receive(number, { text: { body: 'first' } })
  const { page } = await openPage(browser, url)
  await page.setViewportSize({ width: 360, height: 740 })
  await page.locator('#chats').getByText('first').waitFor()
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(360)
})

test.skipIf(!chromiumPath)('leaves the keyboard where it is when something comes', async () => {
  const { receive, send, number, url } = await startTrial()
  await receive(number, { text: { body: 'first' } })
  const { page } = await openPage(browser, url)
  const chat = page.locator('#chats button')
  await chat.getByText('first').waitFor()
  await chat.focus()
  await receive(number, { text: { body: 'second' } })
  await chat.getByText('second').waitFor()
  expect(await page.locator('#chats button:focus').count()).toBe(1)

  await send(number, { text: { body: 'third' } })
  const like = page.locator('#thread li').filter({ hasText: 'third' }).getByRole('button', { name: '👍' })
  await like.focus()
  await receive(number, { text: { body: 'fourth' } })
  await page.locator('#thread').getByText('fourth').waitFor()
  expect(await like.and(page.locator(':focus')).count()).toBe(1)
})

test.skipIf(!chromiumPath)('without a chat keeps what was written, and leads to where one is opened', async () => {
  const { receiver, url } = await startTrial()
  const { page } = await openPage(browser, url)
  await page.getByLabel('Message').fill('Guten Tag')
  await page.getByLabel('Message').press('Enter')
  expect(await page.locator('#person:focus').count()).toBe(1)
  await page.keyboard.type('4915112345678')
  await page.keyboard.press('Enter')
  await page.getByLabel('Message').press('Enter')
  await expect.poll(() => receiver.messages().at(-1)).toMatchObject({ text: { body: 'Guten Tag' } })
})

test.skipIf(!chromiumPath)(
  'what is written while the simulator is away stays, and the page goes on when it is there',
  async () => {
    const { receive, receiver, number, url } = await startTrial()
    await receive(number, { text: { body: 'first' } })
    const { page } = await openPage(browser, 'about:blank')
    await page.route('**/control/numbers', (route) => route.abort(), { times: 1 })
    await page.goto(url)
    await page.locator('#thread').getByText('first').waitFor()

    const trouble = page.getByRole('alert')
    await page.route('**/control/inbound', (route) => route.abort())
    const field = page.getByLabel('Message')
    await field.fill('A long thought')
    await field.press('Enter')
    await expect.poll(() => trouble.innerText()).toContain('What you write stays here')
    expect(await field.inputValue()).toBe('A long thought')
    await page.unroute('**/control/inbound')
    await field.press('Enter')
    await expect.poll(() => receiver.messages().at(-1)).toMatchObject({ text: { body: 'A long thought' } })
    expect([await field.inputValue(), await trouble.innerText()]).toEqual(['', ''])
  },
)

test.skipIf(!chromiumPath)(
  'tells a screen reader what is new alone, and shows what it has no form for in words',
  async () => {
    const { receive, number, url } = await startTrial()
    await receive(number, { text: { body: 'first' } })
    const { page } = await openPage(browser, url)
    const thread = page.locator('#thread')
    await thread.getByText('first').waitFor()
    await page.evaluate(`{
    window.added = []
    const note = (records) => added.push(...records.flatMap(({ addedNodes }) => [...addedNodes]))
    new MutationObserver(note).observe(document.getElementById('thread'), { childList: true })
  }`)
    const contacts = [{ name: { formatted_name: 'Ana' }, phones: [{ phone: '+15550001' }] }]
    await receive(number, { type: 'contacts', contacts })
    await thread.getByText('Ana · +15550001').waitFor()
    expect(await page.evaluate('added.length')).toBe(1)
  },
)

const makeTemplate = ({ control, number }: Awaited<ReturnType<typeof startTrial>>) =>
  control('POST', 'templates', {
    phone_number_id: number.phone_number_id,
    name: 'ready',
    components: [
      { type: 'HEADER', format: 'TEXT', text: 'Good news' },
      { type: 'BODY', text: 'Hi {{1}}, it is ready.' },
      { type: 'BUTTONS', buttons: [{ type: 'QUICK_REPLY', text: 'Coming' }] },
    ],
  })

test.skipIf(!chromiumPath)('on a phone the chats are a strip, nothing of the page is out of its width', async () => {
  const { receive, number, url } = await startTrial()
  for (const from of ['16505551001', '16505551002', '16505551003'])
    await receive(number, { from, text: { body: 'Hi' } })
  const { page, complaints } = await openPage(browser, url)
  await page.setViewportSize({ width: 375, height: 740 })
  const chats = page.locator('#chats button')
  await expect.poll(() => chats.count()).toBe(3)
  const boxes = await Promise.all((await chats.all()).map((chat) => chat.boundingBox()))
  expect(new Set(boxes.map((box) => box?.y)).size).toBe(1)
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(375)
  const thread = await page.locator('#thread').boundingBox()
  expect(thread?.height).toBeGreaterThan(400)
  expect(complaints).toEqual([])
})

test('tells whoever follows what is new, and whoever was away what they missed', async () => {
  const { receive, number, url } = await startTrial()
  await receive(number, { text: { body: 'first' } })
  const first = await firstEvent(url)
  expect(first.data).toMatchObject({ type: 'inbound', number: number.phone_number_id, person })
  await receive(number, { text: { body: 'second' } })
  const missed = await firstEvent(url, first.id)
  expect(missed.data).toMatchObject({ message: { text: { body: 'second' } } })
})

async function firstEvent(url: string, last?: string) {
  const response = await fetch(`${url}/watch/events`, {
    headers: last === undefined ? {} : { 'last-event-id': last },
  })
  let text = ''
  for await (const chunk of response.body ?? []) {
    text += Buffer.from(chunk).toString()
    const [, id = '', data] = /^id: (\d+)\ndata: (.*)$/m.exec(text) ?? []
    if (data === undefined) continue
    return { id, data: JSON.parse(data) as Record<string, unknown> }
  }
  throw new Error('The stream ended.')
}

test('stops although somebody follows', async () => {
  const { stop, url } = await startTrial()
  const response = await fetch(`${url}/watch/events`)
  const ended = response.text()
  await stop()
  expect(await ended).toContain('retry:')
})

test('serves a file to be looked at, never to be run', async () => {
  const { control, url } = await startTrial()
  const typeOf = async (mime_type: string) => {
    const { body } = await control('POST', 'media', { mime_type, data: 'aGk=' })
    return (await fetch(`${url}/watch/files/${String(body['id'])}`)).headers.get('content-type')
  }
  expect(await typeOf('image/png')).toBe('image/png')
  expect(await typeOf('text/html')).toBe('application/octet-stream')
  expect(await typeOf('image/svg+xml')).toBe('application/octet-stream')
  expect((await fetch(`${url}/watch/files/1`)).status).toBe(404)
  const page = await fetch(url)
  expect(page.headers.get('content-security-policy')).toContain("script-src 'self'")
  const dialog = await fetch(`${url}/signup/dialog`)
  for (const { headers } of [page, dialog]) {
    expect(headers.get('content-security-policy')).toMatch(
      /^default-src 'none'; script-src 'self'; .*frame-ancestors 'none'/,
    )
    expect(headers.get('referrer-policy')).toBe('no-referrer')
    expect(headers.get('x-content-type-options')).toBe('nosniff')
  }
  expect(await page.text()).not.toMatch(/<script(?! type="module" src)/)
})
