import { expect, test } from 'vitest'
import { person, startTrial } from '../trial.ts'

test('says which field of a body is wrong', async () => {
  const { control, number } = await startTrial()
  const message = { type: 'text', from: person }
  const wrong: Array<[path: string, field: string, body: unknown]> = [
    ['numbers', 'phone_number_id', { phone_number_id: 'abc' }],
    ['numbers', 'status', { status: 'connected' }],
    ['numbers', 'colour', { colour: 'red' }],
    ['inbound', 'body', 'nonsense'],
    ['inbound', 'body', []],
    ['inbound', 'phone_number_id', { message }],
    ['inbound', 'phone_number_id', { phone_number_id: '999999', message }],
    ['inbound', 'message', { phone_number_id: number.phone_number_id }],
    ['inbound', 'message.type', { phone_number_id: number.phone_number_id, message: { from: person } }],
    ['inbound', 'message.from', { phone_number_id: number.phone_number_id, message: { type: 'text' } }],
    ['inbound', 'message.from', { phone_number_id: number.phone_number_id, message: { ...message, from: '+1' } }],
    ['inbound', 'contact.name', { phone_number_id: number.phone_number_id, message, contact: { name: 'Ana' } }],
    ['faults', 'fault', { match: {} }],
    ['faults', 'fault.kind', { match: {}, fault: { kind: 'explode' } }],
    ['faults', 'fault.ms', { match: {}, fault: { kind: 'delay', ms: -1 } }],
    ['faults', 'match.from', { match: { from: '1' }, fault: { kind: 'reset' } }],
    ['faults', 'times', { match: {}, fault: { kind: 'reset' }, times: 0 }],
    ['settings', 'statuses.1', { statuses: ['sent', 'seen'] }],
    ['settings', 'status_delay_ms', { status_delay_ms: '50' }],
    ['settings', 'duplicates', { duplicates: 'yes' }],
    ['settings', 'speed', { speed: 1 }],
    ['callbacks', 'body', undefined],
  ]
  for (const [path, field, body] of wrong) {
    const answer = await control('POST', path, body)
    expect
      .soft(answer, `${path} ${field}`)
      .toEqual({ status: 400, body: { error: { field, message: expect.any(String) } } })
  }
})

test('says what is allowed, and where a body is no JSON', async () => {
  const { control } = await startTrial()
  const messageOf = async (path: string, body: unknown) =>
    (await control<{ error: { message: string } }>('POST', path, body)).body.error.message
  expect(await messageOf('settings', { duplicates: 'yes' })).toBe('must be true, false or a whole number from 0 to 10')
  expect(await messageOf('numbers', undefined)).toBe('The body must be JSON: Unexpected end of JSON input.')
})

test('makes a number once for each id, and changes what is named', async () => {
  const { addNumber, graph } = await startTrial()
  const first = await addNumber({ phone_number_id: '106540352242922', business_account_id: '102290129340398' })
  expect(first).toEqual({
    phone_number_id: '106540352242922',
    business_account_id: '102290129340398',
    display_phone_number: '+1 555-224-2922',
    status: 'CONNECTED',
    access_token: expect.stringMatching(/^EAA.{64}$/),
  })
  const changed = await addNumber({ phone_number_id: '106540352242922', status: 'FLAGGED' })
  expect(changed).toEqual({ ...first, status: 'FLAGGED' })
  const { body } = await graph(first, 'GET', '/v23.0/106540352242922?fields=status,throughput')
  expect(body).toEqual({ id: '106540352242922', status: 'FLAGGED', throughput: { level: 'STANDARD' } })
})

test('makes a number of its own when no id is given', async () => {
  const { addNumber, number } = await startTrial()
  const other = await addNumber()
  expect(other.phone_number_id).toMatch(/^\d{15}$/)
  expect(new Set([number, other].flatMap((made) => [made.phone_number_id, made.business_account_id])).size).toBe(4)
})

test('shows the settings, changes those named, and goes back to those of the start', async () => {
  const { control, set } = await startTrial({ settings: { status_delay_ms: 7 } })
  const atStart = (await control('GET', 'settings')).body
  expect(atStart).toMatchObject({ statuses: ['sent', 'delivered', 'read'], status_delay_ms: 7, enforce_window: true })
  expect((await set({ statuses: [], duplicates: true })).body).toEqual({ ...atStart, statuses: [], duplicates: 1 })
  expect((await set({ reorder: true })).body).toEqual({ ...atStart, statuses: [], duplicates: 1, reorder: true })
  expect((await control('DELETE', 'settings')).body).toEqual(atStart)
})

test('writes an inbound message as the platform does', async () => {
  const { control, settled, receiver, number } = await startTrial()
  const contact = { profile: { name: 'Ana', username: 'ana.p' }, user_id: 'US.1349', parent_user_id: 'US.ENT.118' }
  const message = {
    type: 'text',
    from: person,
    text: { body: 'hi' },
    context: { from: '15550001111', id: 'wamid.OUT' },
  }
  const answer = await control<{ id: string }>('POST', 'inbound', {
    phone_number_id: number.phone_number_id,
    message,
    contact,
  })
  await settled()
  expect(JSON.parse(receiver.callbacks[0]?.raw ?? '')).toEqual({
    object: 'whatsapp_business_account',
    entry: [
      {
        id: number.business_account_id,
        changes: [
          {
            field: 'messages',
            value: {
              messaging_product: 'whatsapp',
              metadata: {
                display_phone_number: expect.stringMatching(/^1555\d{7}$/),
                phone_number_id: number.phone_number_id,
              },
              contacts: [{ ...contact, wa_id: person }],
              messages: [
                {
                  ...message,
                  id: answer.body.id,
                  timestamp: expect.stringMatching(/^\d{10}$/),
                  from_user_id: 'US.1349',
                },
              ],
            },
          },
        ],
      },
    ],
  })
})

test('keeps the id and time of an inbound message that has them, and doubles it when asked', async () => {
  const { receive, set, settled, receiver, number } = await startTrial()
  await set({ duplicates: 1, status_delay_ms: 1 })
  expect(await receive(number, { id: 'wamid.mine', timestamp: '1750000000' })).toBe('wamid.mine')
  await settled()
  const mine = { id: 'wamid.mine', timestamp: '1750000000' }
  expect(receiver.messages()).toMatchObject([mine, mine])
})

test('writes people who have a user id alone, and system messages without contacts', async () => {
  const { control, settled, receiver, number } = await startTrial()
  const { phone_number_id } = number
  await control('POST', 'inbound', {
    phone_number_id,
    message: { type: 'text', from_user_id: 'US.1', text: { body: 'a' } },
  })
  await settled()
  const [first] = receiver.changes()
  expect(first?.value.contacts).toEqual([{ profile: { name: 'User US.1' }, user_id: 'US.1' }])
  expect(first?.value.messages?.[0]).not.toHaveProperty('from')

  const system = { body: 'changed', wa_id: '12195555358', type: 'user_changed_number' }
  await control('POST', 'inbound', { phone_number_id, message: { type: 'system', from: person, system } })
  await settled()
  expect(receiver.changes()[1]?.value).not.toHaveProperty('contacts')
})

test('speaks the neutral words everywhere once they are set', async () => {
  const { control, set, send, receive, settled, receiver, number } = await startTrial()
  await set({ words: 'neutral', statuses: ['sent'] })
  const card = [{ phones: [{ phone: '+1', wa_id: '1' }] }]
  await receive(number, { type: 'contacts', contacts: card })
  const { body } = await send(number, { messaging_product: 'chat', text: { body: 'hi' } })
  expect(body).toMatchObject({ messaging_product: 'chat', contacts: [{ input: `+${person}`, chat_id: person }] })
  const refused = await send(number, { text: { body: 'hi' } })
  expect(refused.body.error?.message).toBe('(#100) Param messaging_product must be one of {CHAT} - got "whatsapp".')
  const detailed = await send(number, { messaging_product: 'chat', to: 'x', text: { body: 'hi' } })
  expect(detailed.body.error?.error_data?.messaging_product).toBe('chat')

  await settled()
  const raw = receiver.callbacks.map((callback) => callback.raw).join()
  expect(raw).not.toMatch(/whatsapp|wa_id/)
  expect(raw).toContain('"object":"chat_business_account"')
  expect(receiver.messages()[0]).toMatchObject({ contacts: [{ phones: [{ chat_id: '1' }] }] })
  expect(receiver.changes().map(({ value }) => value.contacts)).toMatchObject([
    [{ chat_id: person }],
    [{ chat_id: person }],
  ])
  expect((await control('DELETE', 'settings')).body).toMatchObject({ words: 'platform' })
})
