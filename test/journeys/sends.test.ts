import { createServer } from 'node:http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { listen } from '../listen.ts'
import { png } from '../png.ts'
import { client, type Json, newPhone, until } from './client.ts'
import { unsaid } from './openapi-check.ts'
import { type Receiver, startReceiver } from './receiver.ts'

const { api, phone, inbound, sent, control } = client()

const picture = png()
const webp = Buffer.from('UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA', 'base64')

let receiver: Receiver
let files: { url: string; close: () => void }
/** Somebody who has just written in. */
let to: string

beforeAll(async () => {
  receiver = await startReceiver()
  files = await serveFiles()
  await api('POST', '/webhook_subscriptions', {
    body: { url: receiver.url, events: ['message.sent', 'message.status', 'message.received'] },
  })
  to = newPhone()
  const upstreamId = await inbound(to, 'hello')
  // Others write to the number, too.
  const told = () => receiver.of('message.received').map(({ headers }) => headers['x-svc-event-id'])
  await until(() => expect(told()).toContain(upstreamId))
})
afterAll(() => {
  receiver.close()
  files.close()
})

async function serveFiles() {
  const server = createServer((request, response) => {
    if (request.url === '/a.png') return response.writeHead(200, { 'content-type': 'image/png' }).end(picture)
    if (request.url === '/a.webp') return response.writeHead(200, { 'content-type': 'image/webp' }).end(webp)
    if (request.url === '/liar.png')
      return response.writeHead(200, { 'content-type': 'image/png' }).end('<html></html>')
    if (request.url === '/slow.png') return undefined
    return response.writeHead(404).end()
  })
  const port = await listen(server)
  return { url: `http://127.0.0.1:${port}`, close: () => server.close().closeAllConnections() }
}

const send = (type: string, block: unknown, more: object = {}) =>
  api('POST', `/${phone}/messages`, { body: { messaging_product: 'chat', to, type, [type]: block, ...more } })

/** What the platform got of a message that was accepted here. */
async function atPlatform({ status, body }: { status: number; body: Json }): Promise<Json> {
  expect({ status, body }).toMatchObject({ status: 200 })
  let entry: Json
  await until(async () => {
    entry = (await sent()).find((one) => one.body.biz_opaque_callback_data === body.data.id)
    expect(entry).toBeDefined()
  })
  return entry.body
}

test('an interactive message with buttons goes out in the words of the platform', async () => {
  const answer = await send('interactive', {
    type: 'reply_buttons',
    header: { type: 'text', text: 'Hi' },
    body: { text: 'Pick one' },
    footer: { text: 'thanks' },
    action: { buttons: [{ type: 'reply', reply: { id: 'y', title: 'Yes' } }] },
  })
  const got = await atPlatform(answer)
  expect(got).toMatchObject({ type: 'interactive', interactive: { type: 'button', body: { text: 'Pick one' } } })
  const { body } = await api('GET', `/${phone}/messages/${answer.body.data.id}`)
  expect(body.data).toMatchObject({ type: 'interactive', content: 'Pick one' })
})

test('a link button with an image in its header: the image goes by id', async () => {
  const got = await atPlatform(
    await send('interactive', {
      type: 'cta_url',
      header: { type: 'image', image: { link: `${files.url}/a.png` } },
      body: { text: 'Open it' },
      action: { name: 'cta_url', parameters: { display_text: 'Open', url: 'https://example.com/a' } },
    }),
  )
  expect(got.interactive.header.image).toEqual({ id: expect.stringMatching(/^\d+$/) })
})

test('an image by link is fetched, stored and sent by id; message.sent shows where it is', async () => {
  const answer = await send('image', { link: `${files.url}/a.png`, caption: 'a dot' })
  const got = await atPlatform(answer)
  expect(got.image).toEqual({ id: expect.stringMatching(/^\d+$/), caption: 'a dot' })
  const { id } = answer.body.data
  const { body } = await api('GET', `/${phone}/messages/${id}`)
  expect(body.data).toMatchObject({ type: 'image', content: 'a dot', media_url: expect.stringContaining('/media/') })
  const file = await fetch(body.data.media_url)
  expect(Buffer.from(await file.arrayBuffer()).equals(picture)).toBe(true)
  const event = () => receiver.of('message.sent').find((delivery) => delivery.body.id === `${id}:sent`)?.body
  await until(() => expect(event()).toBeDefined())
  expect(event().data.message).toMatchObject({
    type: 'image',
    body: 'a dot',
    media_url: body.data.media_url,
    media_status: 'ready',
    image: { link: body.data.media_url, caption: 'a dot' },
  })
})

test.each([
  ['/a.webp', 'WebP'],
  ['/liar.png', 'another type than it says'],
  ['/gone.png', 'a 404'],
  ['/slow.png', 'no answer'],
])('a link to %s (%s) is refused, and nothing is sent', async (path) => {
  const mine = async () => (await sent()).filter(({ body }) => body.to === to).length
  const before = await mine()
  const answer = await send('image', { link: `${files.url}${path}` })
  expect(answer).toMatchObject({ status: 422, body: { error: { code: 'media_upload_failed', param: 'image.link' } } })
  expect(await mine()).toBe(before)
})

test('the same file is sent twice by its id, and is brought to the platform once', async () => {
  const form = new FormData()
  form.append('messaging_product', 'chat')
  form.append('file', new Blob([picture], { type: 'image/png' }), 'a.png')
  const uploaded = await api('POST', `/${phone}/media`, { form })
  expect(uploaded.status).toBe(201)
  const block = { id: uploaded.body.data.id }
  const [first, second] = [await atPlatform(await send('image', block)), await atPlatform(await send('image', block))]
  expect(first.image.id).toBe(second.image.id)
})

test('an id of ours that is not there is refused with its field; one of the platform is passed on', async () => {
  const unknown = await send('image', { id: 'med_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD' })
  expect(unknown).toMatchObject({ status: 400, body: { error: { code: 'invalid_field_value', param: 'image.id' } } })
})

test('a reaction goes out, and so does taking it away', async () => {
  const target = await inbound(to, 'react to me')
  expect((await atPlatform(await send('reaction', { message_id: target, emoji: '👍' }))).reaction).toEqual({
    message_id: target,
    emoji: '👍',
  })
  expect((await atPlatform(await send('reaction', { message_id: target, emoji: '' }))).reaction.emoji).toBe('')
})

test('a reply quotes the message that it answers', async () => {
  const quoted = await inbound(to, 'quote me')
  const got = await atPlatform(await send('text', { body: 'yes' }, { context: { message_id: quoted } }))
  expect(got.context).toEqual({ message_id: quoted })
})

test('a bsuid is a recipient', async () => {
  const bsuid = `US.${Date.now()}`
  await control('/control/inbound', {
    phone_number_id: phone,
    message: { from_user_id: bsuid, type: 'text', text: { body: 'hi' } },
    contact: { profile: { name: 'Bea' }, user_id: bsuid },
  })
  await until(async () => {
    const answer = await api('POST', `/${phone}/messages`, {
      body: { messaging_product: 'chat', to: bsuid, type: 'text', text: { body: 'hello' } },
    })
    expect(answer.status).toBe(200)
    expect((await atPlatform(answer)).recipient).toBe(bsuid)
  })
})

test('webhooks name who hides the number by the bsuid, in fields that are described', async () => {
  const bsuid = `US.${Date.now()}`
  const profile = { name: 'Bea', username: 'bea.b' }
  await control('/control/inbound', {
    phone_number_id: phone,
    message: { from_user_id: bsuid, type: 'text', text: { body: 'hi' } },
    contact: { profile, user_id: bsuid },
  })
  const valuesOf = (type: string) => receiver.of(type).map(({ body }) => body.entry[0].changes[0].value)
  const received = () => valuesOf('message.received').find(({ messages: [one] }) => one.from_user_id === bsuid)
  const reported = () => valuesOf('message.status').find(({ statuses: [one] }) => one.recipient_user_id === bsuid)
  await until(() => expect(received()).toMatchObject({ contacts: [{ profile, user_id: bsuid }] }))
  await send('text', { body: 'hello' }, { to: bsuid })
  await until(() => expect(reported()).toBeDefined())
  expect(unsaid('InboundMessage', received().messages[0])).toEqual([])
  expect(unsaid('SenderProfile', received().contacts[0])).toEqual([])
  expect(unsaid('StatusUpdate', reported().statuses[0])).toEqual([])
})

test('a customer of Mexico is answered at the number that the webhook names, and at the one that people write', async () => {
  const number = String(Date.now()).slice(-10)
  const from = `521${number}`
  await control('/control/inbound', { phone_number_id: phone, message: { from, type: 'text', text: { body: 'hola' } } })
  await until(async () => {
    const answer = await api('POST', `/${phone}/messages`, {
      body: { messaging_product: 'chat', to: from, type: 'text', text: { body: 'hello' } },
    })
    expect(answer).toMatchObject({ status: 200, body: { data: { to: `+${from}` } } })
  })
  const answer = await api('POST', `/${phone}/messages`, {
    body: { messaging_product: 'chat', to: `52${number}`, type: 'text', text: { body: 'hello again' } },
  })
  expect(answer).toMatchObject({ status: 200, body: { data: { to: `+52${number}` } } })
})

test('a read receipt reaches the platform, marks the message and the earlier ones, and takes them off the count', async () => {
  const from = newPhone()
  const received = (id: string) =>
    receiver.of('message.received').find(({ headers }) => headers['x-svc-event-id'] === id)
  // The platform's times are whole seconds: of two that are on their way at once, nobody can tell which came first.
  const first = await inbound(from, 'one')
  await until(() => expect(received(first)).toBeDefined())
  const second = await inbound(from, 'two')
  await until(() => expect(received(second)).toBeDefined())
  const { conversation_id: conversation, message_id: message } = (received(second)?.body ?? {}).svc
  const receipt = { status: 'read', message_id: second, typing_indicator: { type: 'text' } }
  const answer = await api('POST', `/${phone}/messages`, { body: receipt })
  expect(answer).toMatchObject({
    status: 200,
    body: { data: { id: message, object: 'message', status: 'read', message_id: second } },
  })
  const { body } = await api('GET', `/${phone}/conversations/${conversation}`)
  expect(body.data.unread_count).toBe(0)
  const list = await api('GET', `/${phone}/messages?conversation_id=${conversation}&direction=inbound`)
  expect(list.body.data.map(({ status }: Json) => status)).toEqual(['read', 'read'])
  expect((await api('POST', `/${phone}/messages`, { body: receipt })).body.data).toEqual(answer.body.data)
})

test('a receipt for an unknown message is a 404, for one of ours a 400', async () => {
  const unknown = await api('POST', `/${phone}/messages`, { body: { status: 'read', message_id: 'wamid.unknown' } })
  expect(unknown.status).toBe(404)
  const ours = await send('text', { body: 'mine' })
  await atPlatform(ours)
  let upstreamId: string | undefined
  await until(async () => {
    const { body } = await api('GET', `/${phone}/messages/${ours.body.data.id}`)
    upstreamId = body.data.message_id
    expect(upstreamId).toBeDefined()
  })
  const outbound = await api('POST', `/${phone}/messages`, { body: { status: 'read', message_id: upstreamId } })
  expect(outbound).toMatchObject({ status: 400, body: { error: { param: 'message_id' } } })
})
