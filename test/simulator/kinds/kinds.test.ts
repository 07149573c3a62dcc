import { expect, test } from 'vitest'
import { person, startTrial, type Trial } from '../trial.ts'

const ask = (trial: Trial, body: object) =>
  trial.control('POST', 'callbacks', { phone_number_id: trial.number.phone_number_id, ...body })

/** The one change that the callback of a kind tells. */
async function told(trial: Trial, body: object, entryId = trial.number.business_account_id) {
  const before = trial.receiver.changes().length
  const answer = await ask(trial, body)
  expect(answer).toMatchObject({ status: 200 })
  await trial.settled()
  const [change, ...others] = trial.receiver.changes().slice(before)
  expect(others).toEqual([])
  expect(change?.account).toBe(entryId)
  return { field: change?.field, value: change?.value as unknown, answer: answer.body }
}

const digitsOf = ({ number }: Trial) => number.display_phone_number.replaceAll(/\D/g, '')

test('takes back and rewrites what a person wrote', async () => {
  const trial = await startTrial()
  const id = await trial.receive(trial.number)
  await trial.settled()
  const revoked = await told(trial, { kind: 'revoke', message_id: id })
  expect(revoked).toMatchObject({
    field: 'messages',
    value: { messages: [{ from: person, type: 'revoke', revoke: { original_message_id: id } }] },
  })
  const edited = await told(trial, { kind: 'edit', message_id: id, text: 'better' })
  const message = { type: 'text', text: { body: 'better' } }
  expect(edited).toMatchObject({
    value: { messages: [{ id: edited.answer['id'], type: 'edit', edit: { original_message_id: id, message } }] },
  })
  expect(await ask(trial, { kind: 'revoke', message_id: 'wamid.unknown' })).toMatchObject({
    status: 400,
    body: { error: { field: 'from' } },
  })
  expect(await ask(trial, { kind: 'revoke', message_id: 'wamid.unknown', from: person })).toMatchObject({ status: 200 })
})

test('echoes what the business wrote in its app', async () => {
  const trial = await startTrial()
  const { field, value, answer } = await told(trial, { kind: 'echo', to: person, text: 'from the phone' })
  expect({ field, value }).toEqual({
    field: 'smb_message_echoes',
    value: {
      messaging_product: 'whatsapp',
      metadata: { display_phone_number: digitsOf(trial), phone_number_id: trial.number.phone_number_id },
      message_echoes: [
        {
          from: digitsOf(trial),
          to: person,
          id: answer['id'],
          timestamp: expect.stringMatching(/^\d{10}$/),
          type: 'text',
          text: { body: 'from the phone' },
        },
      ],
    },
  })
})

test('tells any status of a send, with what the send carried', async () => {
  const trial = await startTrial({ settings: { statuses: [] } })
  const template = { name: 'order_ok', language: { code: 'en_US' } }
  const body = { type: 'template', template, biz_opaque_callback_data: 'msg_01' }
  const sent = await trial.send(trial.number, body)
  const id = sent.body.messages?.[0]?.id
  const played = await told(trial, { kind: 'played', message_id: id })
  expect(played.value).toMatchObject({
    contacts: [{ wa_id: person }],
    statuses: [{ id, status: 'played', recipient_id: person, biz_opaque_callback_data: 'msg_01' }],
  })
  const failed = await told(trial, { kind: 'status', message_id: id, status: 'failed', code: 131047 })
  expect(failed.value).toMatchObject({ statuses: [{ id, status: 'failed', errors: [{ code: 131047 }] }] })
  const unknown = { kind: 'status', message_id: 'wamid.unknown', status: 'delivered' }
  expect(await ask(trial, unknown)).toMatchObject({ status: 400, body: { error: { field: 'to' } } })
  expect((await told(trial, { ...unknown, to: person })).value).toMatchObject({ statuses: [{ id: 'wamid.unknown' }] })
})

test('tells of people: user ids, preferences, the address book', async () => {
  const trial = await startTrial()
  const ids = { previous: 'US.1', current: 'US.2' }
  expect(await told(trial, { kind: 'user_id_update', wa_id: person, ...ids })).toMatchObject({
    field: 'user_id_update',
    value: { contacts: [{ wa_id: person, user_id: 'US.2' }], user_id_update: [{ wa_id: person, user_id: ids }] },
  })
  expect(await told(trial, { kind: 'user_preferences', wa_id: person, value: 'stop' })).toMatchObject({
    field: 'user_preferences',
    value: { user_preferences: [{ wa_id: person, category: 'marketing_messages', value: 'stop' }] },
  })
  const contacts = [
    { phone_number: person, full_name: 'Ana Pérez', first_name: 'Ana' },
    { phone_number: '16505550000', full_name: 'Gone', action: 'remove' },
  ]
  expect(await told(trial, { kind: 'contact_sync', contacts })).toMatchObject({
    field: 'smb_app_state_sync',
    value: {
      state_sync: [
        { type: 'contact', contact: { phone_number: person, full_name: 'Ana Pérez' }, action: 'add' },
        { type: 'contact', contact: { phone_number: '16505550000' }, action: 'remove' },
      ],
    },
  })
})

test('tells the history in chunks, or that it is not shared', async () => {
  const trial = await startTrial()
  const messages = [{ text: 'then' }, { by: 'business', message: { type: 'media_placeholder' }, status: 'SENT' }]
  const { value, answer } = await told(trial, {
    kind: 'history',
    phase: 1,
    progress: 55,
    threads: [{ with: person, messages }],
  })
  expect(value).toMatchObject({
    history: [
      {
        metadata: { phase: 1, chunk_order: 1, progress: 55 },
        threads: [
          {
            id: person,
            messages: [
              { from: person, type: 'text', text: { body: 'then' }, history_context: { status: 'READ' } },
              { from: digitsOf(trial), to: person, type: 'media_placeholder', history_context: { status: 'SENT' } },
            ],
          },
        ],
      },
    ],
  })
  expect(answer['ids']).toHaveLength(2)
  const hidden = await told(trial, { kind: 'history', threads: [{ user_id: 'US.1', messages }] })
  expect(hidden.value).toMatchObject({
    history: [
      {
        threads: [{ context: { user_id: 'US.1' }, messages: [{ from_user_id: 'US.1' }, { to_user_id: 'US.1' }] }],
      },
    ],
  })
  expect(JSON.stringify(hidden.value)).not.toContain(person)
  const nobody = { kind: 'history', threads: [{ messages }] }
  expect(await ask(trial, nobody)).toMatchObject({ status: 400, body: { error: { field: 'threads.0' } } })
  expect((await told(trial, { kind: 'history', declined: true })).value).toMatchObject({
    history: [{ errors: [{ code: 2593109 }] }],
  })
})

test('tells the files of old messages apart from them', async () => {
  const trial = await startTrial()
  const image = { type: 'image', image: { id: '1' } }
  const files = [
    { message_id: 'wamid.1', with: person, message: image },
    { message_id: 'wamid.2', with: person, by: 'business', message: image },
  ]
  expect((await told(trial, { kind: 'history_files', files })).value).toMatchObject({
    messages: [{ from: person, id: 'wamid.1', ...image }],
    message_echoes: [{ from: digitsOf(trial), to: person, id: 'wamid.2', ...image }],
  })
  expect((await told(trial, { kind: 'history_files', files: files.slice(1) })).value).not.toHaveProperty('messages')
})

const events: Array<[object, { field: string; value: object }]> = [
  [
    { kind: 'account_update', event: 'DISABLED_UPDATE' },
    { field: 'account_update', value: { event: 'DISABLED_UPDATE', ban_info: { waba_ban_state: 'DISABLE' } } },
  ],
  [
    { kind: 'account_update', event: 'DISABLED_UPDATE', value: { ban_info: { waba_ban_state: 'REINSTATE' } } },
    { field: 'account_update', value: { ban_info: { waba_ban_state: 'REINSTATE' } } },
  ],
  [
    { kind: 'account_update', event: 'ACCOUNT_RESTRICTION' },
    { field: 'account_update', value: { restriction_info: [{}] } },
  ],
  [
    { kind: 'quality', event: 'THROUGHPUT_UPGRADE', current_limit: 'TIER_10K' },
    { field: 'phone_number_quality_update', value: { event: 'THROUGHPUT_UPGRADE', current_limit: 'TIER_10K' } },
  ],
  [
    { kind: 'security', event: 'PIN_CHANGED' },
    { field: 'security', value: { event: 'PIN_CHANGED' } },
  ],
  [
    { kind: 'name_update', decision: 'APPROVED' },
    { field: 'phone_number_name_update', value: { decision: 'APPROVED' } },
  ],
  [
    { kind: 'account_review', decision: 'REJECTED' },
    { field: 'account_review_update', value: { decision: 'REJECTED' } },
  ],
  [
    { kind: 'error', code: 131031 },
    { field: 'messages', value: { errors: [{ code: 131031 }] } },
  ],
  [
    { kind: 'field', field: 'account_alerts', value: { a: 1 } },
    { field: 'account_alerts', value: { a: 1 } },
  ],
  [
    { kind: 'unsupported', from: person },
    { field: 'messages', value: { messages: [{ type: 'unsupported', errors: [{ code: 131051 }] }] } },
  ],
  [
    { kind: 'system', from: person, wa_id: '16505550000' },
    { field: 'messages', value: { messages: [{ system: { type: 'user_changed_number', wa_id: '16505550000' } }] } },
  ],
  [
    { kind: 'system', previous_user_id: 'US.1', user_id: 'US.2' },
    {
      field: 'messages',
      value: {
        messages: [
          {
            id: expect.stringMatching(/^wamid\./),
            timestamp: expect.stringMatching(/^\d{10}$/),
            type: 'system',
            system: { type: 'user_changed_user_id', previous_user_id: 'US.1', user_id: 'US.2' },
          },
        ],
      },
    },
  ],
]

test('tells of accounts, troubles and what it cannot hand on', async () => {
  const trial = await startTrial()
  for (const [body, expected] of events) expect.soft(await told(trial, body)).toMatchObject(expected)
})

test('tells of the tie to our business in an entry of our own business', async () => {
  const trial = await startTrial()
  const waba_info = { waba_id: trial.number.business_account_id }
  const own = '35602282435505'
  const removed = await told(trial, { kind: 'account_update', event: 'PARTNER_REMOVED' }, own)
  expect(removed).toMatchObject({ field: 'account_update', value: { waba_info, disconnection_info: {} } })
  expect(removed.value).not.toHaveProperty('phone_number')
  const taken = await told(trial, { kind: 'account_update', event: 'PARTNER_APP_UNINSTALLED' }, own)
  expect(taken.value).toMatchObject({ waba_info: { ...waba_info, partner_app_id: expect.any(String) } })
})

test('changes a template and tells it', async () => {
  const trial = await startTrial()
  const { body } = await trial.control<{ data: Array<{ id: string }> }>(
    'GET',
    `templates?phone_number_id=${trial.number.phone_number_id}`,
  )
  const template = { template_id: body.data[0]?.id }
  expect(await told(trial, { kind: 'template_category', ...template, category: 'MARKETING' })).toMatchObject({
    field: 'template_category_update',
    value: { previous_category: 'UTILITY', new_category: 'MARKETING' },
  })
  expect(await told(trial, { kind: 'template_quality', ...template, quality: 'RED' })).toMatchObject({
    field: 'message_template_quality_update',
  })
  expect(await told(trial, { kind: 'template_components', ...template, text: 'New text.' })).toMatchObject({
    field: 'message_template_components_update',
    value: { message_template_element: 'New text.' },
  })
  expect(await told(trial, { kind: 'template_status', ...template, status: 'PAUSED' })).toMatchObject({
    field: 'message_template_status_update',
    value: { event: 'PAUSED', message_template_category: 'MARKETING' },
  })
  const message = { type: 'template', template: { name: 'order_ok', language: { code: 'en_US' } } }
  expect(await trial.send(trial.number, message)).toMatchObject({ body: { error: { code: 132015 } } })
})

test('fills in what the platform tells of a file that a person sent', async () => {
  const trial = await startTrial()
  const { body } = await trial.control('POST', 'media', { mime_type: 'image/png', data: 'aGk=', filename: 'a.png' })
  const id = body['id']
  await trial.receive(trial.number, { type: 'image', image: { id, caption: 'Look' } })
  await trial.receive(trial.number, { type: 'document', document: { id, sha256: 'mine' } })
  await trial.settled()
  const known = { id, mime_type: 'image/png', url: expect.stringContaining('/whatsapp_business/attachments/') }
  expect(trial.receiver.messages()).toMatchObject([
    { type: 'image', image: { ...known, sha256: body['sha256'], caption: 'Look' } },
    { type: 'document', document: { ...known, sha256: 'mine', filename: 'a.png' } },
  ])
})

test('refuses a kind that is none, a number that is none, and a field that does not belong', async () => {
  const trial = await startTrial()
  const wrong: Array<[string, object]> = [
    ['kind', { kind: 'nonsense' }],
    ['kind', { kind: 'toString' }],
    ['phone_number_id', { kind: 'quality', event: 'x', phone_number_id: '999999' }],
    ['event', { kind: 'quality' }],
    ['colour', { kind: 'quality', event: 'x', colour: 'red' }],
    ['template_id', { kind: 'template_status', template_id: '1', status: 'PAUSED' }],
  ]
  for (const [field, body] of wrong)
    expect.soft(await ask(trial, body)).toMatchObject({ status: 400, body: { error: { field } } })
})
