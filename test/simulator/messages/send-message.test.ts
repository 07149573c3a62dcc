import { describe, expect, test } from 'vitest'
import { person, startTrial } from '../trial.ts'

const text = { type: 'text', text: { body: 'hi' } }
const template = { type: 'template', template: { name: 'order_ok', language: { code: 'en_US' } } }

describe('answers', () => {
  test('a send with the ids of recipient and message', async () => {
    const { send, receive, number } = await startTrial()
    await receive(number)
    const { status, body } = await send(number, { ...text, to: '+1 (650) 555-1234', recipient_type: 'individual' })
    expect(status).toBe(200)
    expect(body).toEqual({
      messaging_product: 'whatsapp',
      contacts: [{ input: '+1 (650) 555-1234', wa_id: person }],
      messages: [{ id: expect.stringMatching(/^wamid\.HBgL[A-Za-z0-9+/]+=*$/) }],
    })
  })

  test('a user id with a user id, and lets `to` win over it', async () => {
    const { send, receive, number } = await startTrial()
    await receive(number, { from_user_id: 'US.13491208655302741918' })
    const recipient = 'US.13491208655302741918'
    const alone = await send(number, { ...text, to: undefined, recipient })
    expect(alone.body.contacts).toEqual([{ input: recipient, user_id: recipient }])
    const both = await send(number, { ...text, recipient })
    expect(both.body.contacts).toEqual([{ input: `+${person}`, wa_id: person }])
  })

  test.for([
    ['+5531987654321', '553187654321'],
    ['+5511987654321', '5511987654321'],
    ['+525512345678', '5215512345678'],
    ['6505551234', '16505551234'],
    ['4915112345678', '4915112345678'],
  ])('%s with the id that the platform has for it', async ([to, waId]) => {
    const { send, number } = await startTrial({ settings: { enforce_window: false } })
    const { body } = await send(number, { ...text, to })
    expect(body.contacts).toEqual([{ input: to, wa_id: waId }])
  })

  test('a template with its message_status, window or not', async () => {
    const { send, number } = await startTrial()
    const { body } = await send(number, template)
    expect(body.messages).toEqual([{ id: expect.stringMatching(/^wamid\./), message_status: 'accepted' }])
  })

  test('a read receipt with success, and keeps it apart from the sends', async () => {
    const { send, receive, control, number } = await startTrial()
    const receipt = { status: 'read', message_id: await receive(number), typing_indicator: { type: 'text' } }
    expect(await send(number, { ...receipt, to: undefined })).toEqual({ status: 200, body: { success: true } })
    const kept = await control('GET', `receipts?phone_number_id=${number.phone_number_id}`)
    expect(kept.body['data']).toEqual([{ at: expect.any(String), body: { messaging_product: 'whatsapp', ...receipt } }])
    expect((await control('GET', 'sent')).body).toEqual({ data: [] })
  })

  test('a list of what was accepted, in order, as it came', async () => {
    const { send, receive, addNumber, control, number } = await startTrial()
    const other = await addNumber()
    await receive(number)
    await receive(other)
    const first = await send(number, { ...text, to: `+${person}`, unknown_key: [1] })
    await send(other, text)
    await send(number, { type: 'text', text: { body: '' } })
    const { body } = await control('GET', `sent?phone_number_id=${number.phone_number_id}`)
    expect(body['data']).toEqual([
      {
        id: first.body.messages?.[0]?.id,
        at: expect.stringMatching(/^\d{4}-.*\.\d{3}Z$/),
        body: { messaging_product: 'whatsapp', to: `+${person}`, ...text, unknown_key: [1] },
      },
    ])
  })
})

describe('refuses', () => {
  test('a token that is missing, unknown, or of another number', async () => {
    const { url, graph, addNumber, number } = await startTrial()
    const path = `/v23.0/${number.phone_number_id}/messages`
    const unknown = await graph({ access_token: 'nobody' }, 'POST', path, text)
    expect(unknown).toMatchObject({ status: 401, body: { error: { code: 190, type: 'OAuthException' } } })
    const anonymous = await fetch(url + path, { method: 'POST', body: JSON.stringify(text) })
    expect(anonymous.status).toBe(401)
    expect(await anonymous.json()).toMatchObject({ error: { code: 190 } })
    const foreign = await graph(await addNumber(), 'POST', path, text)
    expect(foreign).toMatchObject({ status: 403, body: { error: { code: 10 } } })
  })

  test('a number that does not exist, or no longer', async () => {
    const { graph, addNumber, send, number } = await startTrial()
    const gone = { status: 400, body: { error: { code: 100, error_subcode: 33, type: 'GraphMethodException' } } }
    expect(await graph(number, 'POST', '/v23.0/999999999/messages', text)).toMatchObject(gone)
    await addNumber({ phone_number_id: number.phone_number_id, status: 'DELETED' })
    expect(await send(number, text)).toMatchObject(gone)
  })

  test.for([
    ['PENDING', 400, 133010],
    ['DISCONNECTED', 400, 133010],
    ['RESTRICTED', 403, 131031],
    ['BANNED', 403, 131031],
  ] as const)('every send of a number that is %s', async ([state, status, code]) => {
    const { addNumber, send, number } = await startTrial()
    await addNumber({ phone_number_id: number.phone_number_id, status: state })
    expect(await send(number, template)).toMatchObject({ status, body: { error: { code } } })
  })

  test('a path without a version, and one that leads nowhere', async () => {
    const { graph, number } = await startTrial()
    const nowhere = { status: 400, body: { error: { code: 2500, fbtrace_id: expect.stringMatching(/^A.{22}$/) } } }
    expect(await graph(number, 'POST', `/latest/${number.phone_number_id}/messages`, text)).toMatchObject(nowhere)
    expect(await graph(number, 'POST', `/v23.0/${number.phone_number_id}/stories`, text)).toMatchObject(nowhere)
  })

  test('a body that is no JSON as one that says nothing', async () => {
    const { graph, number } = await startTrial()
    const { status, body } = await graph(number, 'POST', `/v23.0/${number.phone_number_id}/messages`, 'nonsense')
    expect(status).toBe(400)
    expect(body.error?.message).toBe('(#100) The parameter messaging_product is required.')
  })

  test('a read receipt for what this number did not receive', async () => {
    const { send, receive, addNumber, number } = await startTrial()
    const mine = await receive(number)
    const sent = (await send(number, text)).body.messages?.[0]?.id
    for (const message_id of ['wamid.unknown', sent])
      expect(await send(number, { status: 'read', message_id })).toMatchObject({ status: 400 })
    expect(await send(await addNumber(), { status: 'read', message_id: mine })).toMatchObject({
      status: 400,
      body: { error: { code: 131009 } },
    })
  })

  test('what is over the pair limit and over the throughput, once they are set', async () => {
    const { send, set, number } = await startTrial({ settings: { enforce_window: false, pair_limit: true } })
    const toOne = await Promise.all(Array.from({ length: 46 }, () => send(number, text)))
    expect(toOne.filter(({ status }) => status === 200)).toHaveLength(45)
    expect(toOne.find(({ status }) => status === 400)?.body.error?.code).toBe(131056)

    await set({ pair_limit: false, throughput_per_second: 1 })
    const fast = await Promise.all(Array.from({ length: 50 }, () => send(number, text)))
    expect(fast.map(({ body }) => body.error?.code)).toContain(130429)
  })
})

describe('the 24 hour window', () => {
  const refused = { status: 400, body: { error: { code: 131047, error_data: { messaging_product: 'whatsapp' } } } }
  const hoursAgo = (hours: number) => `${Math.floor(Date.now() / 1_000) - hours * 3_600}`

  test('is closed until somebody writes, and again 24 hours later', async () => {
    const { send, receive, number } = await startTrial()
    expect(await send(number, text)).toMatchObject(refused)
    await receive(number, { timestamp: hoursAgo(25) })
    expect(await send(number, text)).toMatchObject(refused)
    await receive(number, { timestamp: hoursAgo(23) })
    expect(await send(number, text)).toMatchObject({ status: 200 })
    await receive(number, { timestamp: hoursAgo(25) })
    expect(await send(number, text)).toMatchObject({ status: 200 })
  })

  test('belongs to one number and one person', async () => {
    const { send, receive, addNumber, number } = await startTrial()
    await receive(number)
    expect(await send(await addNumber(), text)).toMatchObject(refused)
    expect(await send(number, { ...text, to: '+16505559999' })).toMatchObject(refused)
  })

  test('is found under the rewritten id of a Brazilian phone', async () => {
    const { send, receive, number } = await startTrial()
    await receive(number, { from: '5531987654321' })
    expect(await send(number, { ...text, to: '+5531987654321' })).toMatchObject({ status: 200 })
  })

  test('can refuse afterwards, by a failed status', async () => {
    const { send, settled, receiver, number } = await startTrial({ settings: { window_refusal: 'async' } })
    const { status, body } = await send(number, { ...text, biz_opaque_callback_data: 'msg_1' })
    expect(status).toBe(200)
    await settled()
    expect(receiver.statuses()).toMatchObject([
      {
        id: body.messages?.[0]?.id,
        status: 'failed',
        recipient_id: person,
        biz_opaque_callback_data: 'msg_1',
        errors: [{ code: 131047, title: 'Re-engagement message', error_data: { details: expect.any(String) } }],
      },
    ])
  })
})
