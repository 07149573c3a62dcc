import { expect, test } from 'vitest'
import { WhatsAppAPI } from 'whatsapp-api-js'
import {
  ActionButtons,
  ActionCTA,
  Audio,
  Body,
  BodyComponent,
  BodyParameter,
  Button,
  Document,
  Footer,
  Header,
  Image,
  Interactive,
  Reaction,
  Sticker,
  Template,
  Text,
  Video,
} from 'whatsapp-api-js/messages'
import { person, secret, startTrial, type Trial } from '../trial.ts'

/** It knows one host: its requests go to the simulator instead. */
function clientOf({ url, number }: Trial) {
  const toSimulator: typeof fetch = (input, init) =>
    fetch((input instanceof Request ? input.url : input.toString()).replace('https://graph.facebook.com', url), init)
  return new WhatsAppAPI({
    token: number.access_token,
    appSecret: secret,
    webhookVerifyToken: 'verify-me',
    v: 'v23.0',
    ponyfill: { fetch: toSimulator, subtle: crypto.subtle },
  })
}

test('sends every type that we speak', async () => {
  const trial = await startTrial()
  const client = clientOf(trial)
  const inbound = await trial.receive(trial.number)
  const link = 'https://x.example/a'
  const id = trial.number.phone_number_id
  await trial.control('POST', 'templates', {
    phone_number_id: id,
    name: 'hi',
    components: [{ type: 'BODY', text: 'Hi {{1}}, welcome.' }],
  })
  const messages = [
    new Text('hi', true),
    new Image(link, false, 'c'),
    new Document(link, false, 'c', 'a.pdf'),
    new Video(link),
    new Audio(link, false, true),
    new Sticker(link),
    new Reaction(inbound, '👍'),
    new Reaction(inbound),
    new Interactive(new ActionButtons(new Button('a', 'A')), new Body('b'), new Header('h'), new Footer('f')),
    new Interactive(new ActionCTA('Open', link), new Body('b'), new Header('h')),
    new Template('hi', 'en_US', new BodyComponent(new BodyParameter('Ana'))),
    new Template('order_ok', 'en_US'),
  ]
  for (const message of messages)
    expect
      .soft(await client.sendMessage(id, `+${person}`, message), message._type)
      .toMatchObject({ contacts: [{ wa_id: person }], messages: [{ id: expect.any(String) }] })
  expect(await client.sendMessage(id, `+${person}`, new Text('hi'), inbound, 'msg_01')).toMatchObject({
    messages: [{}],
  })
  expect(await client.markAsRead(id, inbound, 'text')).toEqual({ success: true })
  expect(await client.sendMessage(id, '+16505550000', new Text('hi'))).toMatchObject({ error: { code: 131047 } })
})

test('uploads, looks up, downloads and deletes a file', async () => {
  const trial = await startTrial()
  const client = clientOf(trial)
  const phoneId = trial.number.phone_number_id
  const form = new FormData()
  form.set('file', new Blob(['png'], { type: 'image/png' }), 'a.png')
  const uploaded = await client.uploadMedia(phoneId, form)
  if (!('id' in uploaded)) throw new Error(JSON.stringify(uploaded))
  const found = await client.retrieveMedia(uploaded.id, phoneId)
  if (!('url' in found)) throw new Error(JSON.stringify(found))
  expect(found).toMatchObject({ mime_type: 'image/png', file_size: '3' })
  expect(await (await client.fetchMedia(found.url)).text()).toBe('png')
  expect(await client.deleteMedia(uploaded.id, phoneId)).toEqual({ success: true })
})

test('takes our callbacks: signature, messages of every type, statuses', async () => {
  const trial = await startTrial()
  const client = clientOf(trial)
  const written = [
    { text: { body: 'Zoë 😀' } },
    { type: 'image', image: { id: '1', mime_type: 'image/png', sha256: 'x', caption: 'Ça' } },
    { type: 'interactive', interactive: { type: 'button_reply', button_reply: { id: 'a', title: 'A' } } },
    { type: 'button', button: { payload: 'p', text: 't' } },
    { type: 'reaction', reaction: { message_id: 'wamid.x', emoji: '👍' } },
    { type: 'location', location: { latitude: 1, longitude: 2 } },
  ]
  const ids: string[] = []
  for (const message of written) {
    ids.push(await trial.receive(trial.number, message))
    await trial.settled()
  }
  const sent = await trial.send(trial.number, { text: { body: 'hi' }, biz_opaque_callback_data: 'msg_01' })
  await trial.settled()

  const heard: string[] = []
  client.on.message = ({ phoneID, from, message, name }) => {
    expect([phoneID, from, name]).toEqual([trial.number.phone_number_id, person, `User ${person.slice(-4)}`])
    heard.push(message.id)
  }
  client.on.status = ({ id, status, biz_opaque_callback_data: ours }) => void heard.push(`${id} ${status} ${ours}`)
  for (const { raw, signature } of trial.receiver.callbacks) await client.post(JSON.parse(raw), raw, signature ?? '')
  const id = sent.body.messages?.[0]?.id
  expect(heard).toEqual([...ids, ...['sent', 'delivered', 'read'].map((status) => `${id} ${status} msg_01`)])
  await expect(client.post(JSON.parse('{}'), '{}', 'sha256=00')).rejects.toThrow()
})
