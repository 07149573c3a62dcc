import { Client, MessageType } from '@great-detail/whatsapp'
import { expect, test } from 'vitest'
import { person, secret, startTrial, type Trial } from '../trial.ts'

/** Its paths are resolved against `base/version`, of which the last part falls off without a slash at its end. */
const clientOf = ({ url, number }: Trial) =>
  new Client({
    baseUrl: url,
    graphVersion: 'v23.0/',
    request: { headers: { Authorization: `Bearer ${number.access_token}` }, retry: 0 },
  })

test('sends, and marks as read', async () => {
  const trial = await startTrial()
  const { message } = clientOf(trial)
  const inbound = await trial.receive(trial.number)
  const whom = { phoneNumberID: trial.number.phone_number_id, to: `+${person}` }
  const sends = [
    message.createMessage({ ...whom, type: MessageType.Text, text: { body: 'hi' } }),
    message.createMessage({ ...whom, type: MessageType.Image, image: { link: 'https://x.example/a.png' } }),
    message.createMessage({
      ...whom,
      type: MessageType.Interactive,
      interactive: {
        type: 'button',
        body: { text: 'Pick' },
        action: { buttons: [{ type: 'reply', reply: { id: 'a', title: 'A' } }] },
      },
    }),
    message.createMessage({
      ...whom,
      type: MessageType.Template,
      template: { name: 'order_ok', language: { code: 'en_US' }, components: [] },
    }),
  ]
  for (const answer of await Promise.all(sends.map((send) => send.json())))
    expect
      .soft(answer)
      .toMatchObject({ contacts: [{ wa_id: person }], messages: [{ id: expect.stringMatching(/^wamid\./) }] })
  const status = message.createStatus({
    phoneNumberID: trial.number.phone_number_id,
    message_id: inbound,
    status: 'read',
  })
  expect(await status.json()).toEqual({ success: true })
})

test('uploads, finds and deletes a file', async () => {
  const trial = await startTrial()
  const { media } = clientOf(trial)
  const phoneNumberID = trial.number.phone_number_id
  const file = new Blob(['png'])
  const { id } = await media.upload({ phoneNumberID, file, filename: 'a.png', mimeType: 'image/png' }).json()
  const mediaID = id
  expect(await media.getURL({ mediaID, phoneNumberID }).json()).toMatchObject({ mime_type: 'image/png', id })
  expect(await media.delete({ mediaID, phoneNumberID }).json()).toEqual({ success: true })
})

test('creates, finds, edits and deletes templates', async () => {
  const trial = await startTrial({ settings: { review_delay_ms: 0 } })
  const { template } = clientOf(trial)
  const account = trial.number.business_account_id
  const components = [{ type: 'BODY' as const, text: 'Your order was shipped.' }]
  const created = await template
    .create(account, {
      name: 'shipped',
      language: 'en_US',
      category: 'UTILITY',
      parameter_format: 'POSITIONAL',
      components,
    })
    .json()
  expect(created).toMatchObject({ status: 'APPROVED', category: 'UTILITY' })
  const found = await template.list(account, { status: ['APPROVED', 'PENDING'], limit: 10 }).json()
  expect(found.data).toMatchObject([{ name: 'shipped' }, { name: 'order_ok' }])
  expect(await template.list(account, { status: ['REJECTED', 'PENDING'] }).json()).toMatchObject({ data: [] })
  const edited = [{ type: 'BODY' as const, text: 'It was shipped today.' }]
  expect(await template.update(String(created.id), { components: edited }).json()).toEqual({ success: true })
  expect(await template.get(String(created.id), { fields: ['components', 'status'] }).json()).toMatchObject({
    components: edited,
    status: 'APPROVED',
  })
  expect(await template.delete(account, { name: 'shipped' }).json()).toEqual({ success: true })
})

test('throws on refusals, which have the platform shape', async () => {
  const trial = await startTrial()
  const text = { type: MessageType.Text as const, text: { body: 'hi' } }
  const send = clientOf(trial).message.createMessage({
    phoneNumberID: trial.number.phone_number_id,
    to: `+${person}`,
    ...text,
  })
  const failure = await send.json().catch((err: unknown) => err)
  expect(failure).toMatchObject({ name: 'HTTPError', response: { status: 400 } })
})

test('verifies our callbacks', async () => {
  const trial = await startTrial()
  const { webhook } = clientOf(trial)
  await trial.receive(trial.number, { text: { body: 'Zoë' } })
  await trial.settled()
  const [callback] = trial.receiver.callbacks
  const event = await webhook.eventNotification({
    method: 'POST',
    query: {},
    body: callback?.raw ?? '',
    headers: { 'x-hub-signature-256': callback?.signature ?? '' },
  })
  await event.verifySignature(secret)
  await expect(event.verifySignature('another')).rejects.toThrow('Signature')
  expect(event.eventNotification).toMatchObject({
    entry: [{ changes: [{ field: 'messages', value: { messages: [{ text: { body: 'Zoë' } }] } }] }],
  })
})
