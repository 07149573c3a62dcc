import { GraphApiError, WhatsAppClient } from '@kapso/whatsapp-cloud-api'
import { normalizeWebhook, verifySignature } from '@kapso/whatsapp-cloud-api/server'
import { expect, test } from 'vitest'
import { person, secret, startTrial, type Trial } from '../trial.ts'

const clientOf = ({ url, number }: Trial) =>
  new WhatsAppClient({ accessToken: number.access_token, baseUrl: url, graphVersion: 'v23.0' })

const accepted = {
  messagingProduct: 'whatsapp',
  contacts: [{ input: `+${person}`, waId: person }],
  messages: [{ id: expect.stringMatching(/^wamid\./) }],
}

test('sends every type that we speak', async () => {
  const trial = await startTrial()
  const { messages, media } = clientOf(trial)
  const inbound = await trial.receive(trial.number)
  const phoneNumberId = trial.number.phone_number_id
  const whom = { phoneNumberId, to: `+${person}` }
  const link = 'https://x.example/file'
  const { id } = await media.upload({ phoneNumberId, type: 'image/png', file: new Blob(['png']), fileName: 'a.png' })
  const [first] = (await messages.sendText({ ...whom, body: 'hi', contextMessageId: inbound })).messages
  const sends = [
    messages.sendText({ ...whom, body: 'hi', previewUrl: true }),
    messages.sendImage({ ...whom, image: { id, caption: 'c' } }),
    messages.sendImage({ ...whom, image: { link } }),
    messages.sendDocument({ ...whom, document: { link, filename: 'a.pdf', caption: 'c' } }),
    messages.sendVideo({ ...whom, video: { link } }),
    messages.sendAudio({ ...whom, audio: { link, voice: true } }),
    messages.sendSticker({ ...whom, sticker: { link } }),
    messages.sendReaction({ ...whom, reaction: { messageId: first?.id ?? '', emoji: '👍' } }),
    messages.sendInteractiveButtons({
      ...whom,
      header: { type: 'image', image: { id } },
      bodyText: 'Pick',
      footerText: 'foot',
      buttons: [
        { id: 'a', title: 'A' },
        { id: 'b', title: 'B' },
      ],
    }),
    messages.sendInteractiveCtaUrl({ ...whom, bodyText: 'See', parameters: { displayText: 'Open', url: link } }),
    messages.sendText({ phoneNumberId, to: `+${person}`, recipient: 'US.1', body: 'both' }),
  ]
  for (const send of sends) expect.soft(await send).toMatchObject(accepted)
  expect(await messages.markRead({ phoneNumberId, messageId: inbound, typingIndicator: { type: 'text' } })).toEqual({
    success: true,
  })
  const { body } = await trial.control<{ data: object[] }>('GET', 'sent')
  expect(body.data).toHaveLength(sends.length + 1)
})

test('uploads, looks up, downloads and deletes a file', async () => {
  const trial = await startTrial()
  const { media } = clientOf(trial)
  const phoneNumberId = trial.number.phone_number_id
  const { id: mediaId } = await media.upload({
    phoneNumberId,
    type: 'application/pdf',
    file: new Blob(['%PDF']),
    fileName: 'a.pdf',
  })
  expect(await media.get({ mediaId, phoneNumberId })).toMatchObject({
    id: mediaId,
    mimeType: 'application/pdf',
    fileSize: '4',
  })
  const bytes = await media.download({ mediaId, phoneNumberId, as: 'arrayBuffer', auth: 'always' })
  expect(Buffer.from(bytes as ArrayBuffer).toString()).toBe('%PDF')
  expect(await media.delete({ mediaId, phoneNumberId })).toEqual({ success: true })
  await expect(media.get({ mediaId })).rejects.toMatchObject({ code: 100, errorSubcode: 33 })
})

test('creates, lists and deletes templates, and sends one', async () => {
  const trial = await startTrial({ settings: { review_delay_ms: 0 } })
  const { templates, messages } = clientOf(trial)
  const businessAccountId = trial.number.business_account_id
  const template = { name: 'order_shipped', language: 'en_US', category: 'UTILITY' }
  const body = { type: 'BODY', text: 'Hi {{1}}, order {{2}} was shipped.', example: { bodyText: [['Ana', 'A1']] } }
  const created = await templates.create({ businessAccountId, ...template, components: [body] })
  expect(created).toMatchObject({ id: expect.any(String), status: 'APPROVED' })
  const page = await templates.list({ businessAccountId, limit: 1 })
  expect(page.data).toMatchObject([template])
  const rest = await templates.list({ businessAccountId, limit: 1, after: page.paging.cursors.after ?? '' })
  expect(rest.data).toMatchObject([{ name: 'order_ok' }])

  const parameters = ['Ana', 'A1'].map((text) => ({ type: 'text' as const, text }))
  const whom = { phoneNumberId: trial.number.phone_number_id, to: `+${person}` }
  const send = (count: number) =>
    messages.sendTemplate({
      ...whom,
      template: {
        name: 'order_shipped',
        language: { code: 'en_US' },
        components: [{ type: 'body', parameters: parameters.slice(0, count) }],
      },
    })
  expect(await send(2)).toMatchObject({ messages: [{ messageStatus: 'accepted' }] })
  await expect(send(1)).rejects.toMatchObject({ code: 132000, category: 'template' })
  const again = templates.create({ businessAccountId, ...template, components: [body] })
  await expect(again).rejects.toMatchObject({ code: 100, errorSubcode: 2388024 })
  expect(await templates.delete({ businessAccountId, name: 'order_shipped' })).toEqual({ success: true })
})

test('reads failures as it expects them', async () => {
  const trial = await startTrial()
  const { messages } = clientOf(trial)
  const send = () => messages.sendText({ phoneNumberId: trial.number.phone_number_id, to: `+${person}`, body: 'hi' })
  const failure = await send().catch((err: unknown) => err)
  expect(failure).toBeInstanceOf(GraphApiError)
  expect(failure).toMatchObject({
    httpStatus: 400,
    code: 131047,
    category: 'reengagementWindow',
    details: expect.stringContaining('24 hours'),
    fbtraceId: expect.any(String),
  })
  const categories: Array<[number, string]> = [
    [130429, 'throttling'],
    [131053, 'media'],
    [131031, 'integrity'],
    [131016, 'server'],
    [190, 'authorization'],
  ]
  for (const [code, category] of categories) {
    await trial.control('POST', 'faults', { match: {}, fault: { kind: 'error', code } })
    expect.soft(await send().catch((err: unknown) => err)).toMatchObject({ code, category })
  }
})

test('verifies and reads our callbacks', async () => {
  const trial = await startTrial()
  await trial.receive(trial.number, { text: { body: 'Zoë 😀' } })
  const sent = await trial.send(trial.number, { text: { body: 'hi' } })
  await trial.settled()
  const read = trial.receiver.callbacks.map(({ raw, signature }) => {
    expect(verifySignature({ appSecret: secret, rawBody: raw, signatureHeader: signature ?? '' })).toBe(true)
    return normalizeWebhook(JSON.parse(raw))
  })
  expect(read.flatMap(({ messages }) => messages)).toMatchObject([{ type: 'text', text: { body: 'Zoë 😀' } }])
  const id = sent.body.messages?.[0]?.id
  expect(read.flatMap(({ statuses }) => statuses)).toMatchObject([
    { id, status: 'sent', recipientId: person },
    { id, status: 'delivered' },
    { id, status: 'read' },
  ])
})
