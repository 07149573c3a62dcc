import type {
  CloudAPIRequest,
  CloudAPISendAudioMessageRequest,
  CloudAPISendDocumentMessageRequest,
  CloudAPISendImageMessageRequest,
  CloudAPISendInteractiveButtonsMessageRequest,
  CloudAPISendInteractiveCTAURLRequest,
  CloudAPISendReactionMessageRequest,
  CloudAPISendTemplateMessageRequest,
  CloudAPISendTextMessageRequest,
  CloudAPISendVideoMessageRequest,
} from '@whatsapp-cloudapi/types/cloudapi'
import { expect, onTestFinished, test } from 'vitest'
import { send } from '../../../services/messaging/upstream/send.ts'
import { createUpstream } from '../../../shared/outside/upstream.ts'
import { person, startTrial } from '../trial.ts'

const base = { messaging_product: 'whatsapp', recipient_type: 'individual', to: `+${person}` } as const

/** What the platform's published types say our adapter must put on the wire: the compiler holds each against its own. */
const payloadsOf = (id: string, inbound: string) => {
  const context = { message_id: inbound }
  return [
    { ...base, type: 'text', text: { body: 'hi', preview_url: true } } satisfies CloudAPISendTextMessageRequest,
    { ...base, type: 'image', image: { id, caption: 'c' } } satisfies CloudAPISendImageMessageRequest,
    {
      ...base,
      type: 'document',
      context,
      document: { link: 'https://x.example/a', filename: 'a.pdf' },
    } satisfies CloudAPISendDocumentMessageRequest,
    {
      ...base,
      type: 'video',
      context,
      video: { link: 'https://x.example/a', caption: 'c' },
    } satisfies CloudAPISendVideoMessageRequest,
    { ...base, type: 'audio', audio: { link: 'https://x.example/a' } } satisfies CloudAPISendAudioMessageRequest,
    {
      ...base,
      type: 'reaction',
      reaction: { message_id: inbound, emoji: '👍' },
    } satisfies CloudAPISendReactionMessageRequest,
    {
      ...base,
      type: 'interactive',
      context,
      interactive: {
        type: 'button',
        header: { type: 'image', image: { id } },
        body: { text: 'Pick' },
        footer: { text: 'foot' },
        action: { buttons: [{ type: 'reply', reply: { id: 'a', title: 'A' } }] },
      },
    } satisfies CloudAPISendInteractiveButtonsMessageRequest,
    {
      ...base,
      type: 'interactive',
      interactive: {
        type: 'cta_url',
        header: { type: 'text', text: 'Look' },
        body: { text: 'See' },
        action: { name: 'cta_url', parameters: { display_text: 'Open', url: 'https://x.example/' } },
      },
    } satisfies CloudAPISendInteractiveCTAURLRequest,
    {
      ...base,
      type: 'template',
      template: { name: 'order_ok', language: { code: 'en_US' } },
    } satisfies CloudAPISendTemplateMessageRequest,
  ] satisfies CloudAPIRequest[]
}

test('puts on the wire what the published types say, and is understood', async () => {
  const trial = await startTrial()
  const inbound = await trial.receive(trial.number)
  const uploaded = await trial.upload(trial.number, { type: 'image/png' })
  const upstream = createUpstream({
    UPSTREAM_BASE_URL: trial.url,
    UPSTREAM_API_VERSION: 'v23.0',
    UPSTREAM_APP_ID: '1000',
    UPSTREAM_KEEPALIVE_MS: 1_000,
    UPSTREAM_SUBSCRIBE_APPS: true,
  })
  onTestFinished(() => upstream.close())

  const payloads = payloadsOf(String(uploaded.body['id']), inbound)
  for (const payload of payloads) {
    const block: unknown = Object.entries(payload).find(([key]) => key === payload.type)?.[1]
    const result = await send(upstream, {
      phoneNumberId: trial.number.phone_number_id,
      token: trial.number.access_token,
      messageId: 'msg_01',
      recipient: payload.to,
      type: payload.type,
      body: block,
      mayBegin: () => true,
      contextId: 'context' in payload ? payload.context.message_id : null,
    })
    expect.soft(result, payload.type).toMatchObject({ kind: 'accepted', httpStatus: 200 })
  }
  const { body } = await trial.control<{ data: Array<{ body: object }> }>('GET', 'sent')
  const expected = payloads.map((payload) => ({ ...payload, biz_opaque_callback_data: 'msg_01' }))
  expect(body.data.map((sent) => sent.body)).toEqual(expected)
})
