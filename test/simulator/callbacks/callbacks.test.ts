import { createHmac } from 'node:crypto'
import { expect, onTestFinished, test } from 'vitest'
import { until } from '../../until.ts'
import { startReceiver } from '../recording-receiver.ts'
import { secret, startTrial } from '../trial.ts'

const template = { type: 'template', template: { name: 'order_ok', language: { code: 'en_US' } } }
const signatureOf = (raw: string) => `sha256=${createHmac('sha256', secret).update(raw).digest('hex')}`

test('signs the bytes that it sends', async () => {
  const { receive, settled, receiver, number } = await startTrial()
  await receive(number, { text: { body: 'Zoë 😀' } })
  await settled()
  const [callback] = receiver.callbacks
  expect(callback?.signature).toBe(signatureOf(callback?.raw ?? ''))
})

test('sends any body of the control API as it stands, signed', async () => {
  const { control, settled, receiver } = await startTrial()
  const raw = '{ "object": "whatsapp_business_account",  "entry": [] } '
  await control('POST', 'callbacks', raw)
  await control('POST', 'callbacks', 'not json')
  await settled()
  expect(receiver.callbacks).toEqual([
    { raw, signature: signatureOf(raw), answered: 200 },
    { raw: 'not json', signature: signatureOf('not json'), answered: 200 },
  ])
})

test('gathers what is due together into few posts, and loses and doubles nothing', async () => {
  const { send, settled, receiver, number } = await startTrial()
  const answers = await Promise.all(Array.from({ length: 100 }, () => send(number, template)))
  await settled()
  const told = receiver.statuses().map(({ id, status }) => `${id} ${status}`)
  const expected = answers.flatMap(({ body }) =>
    ['sent', 'delivered', 'read'].map((status) => `${body.messages?.[0]?.id} ${status}`),
  )
  expect(told.toSorted()).toEqual(expected.toSorted())
  expect(receiver.callbacks.length).toBeLessThan(150)
})

test('tries again until it is answered 200', async () => {
  const { receive, receiver, number } = await startTrial()
  const answers = [500, 302, 201, 401, 200]
  receiver.answer = () => answers.shift() ?? 200
  const id = await receive(number)
  await until(() => expect(receiver.messages()).toMatchObject([{ id }]))
  expect(receiver.callbacks.map(({ answered }) => answered)).toEqual([500, 302, 201, 401, 200])
})

test('loses nothing while the receiver is away', async () => {
  const { receive, control, receiver, number } = await startTrial()
  await receiver.stop()
  const ids = await Promise.all(Array.from({ length: 50 }, () => receive(number)))
  await until(async () => {
    const { body } = await control<{ refused: number; waiting: number }>('GET', 'callbacks')
    expect(body.refused).toBeGreaterThan(2)
    expect(body.waiting).toBe(50)
  })

  const back = await startReceiver({ port: receiver.port })
  onTestFinished(back.stop)
  await until(() => expect(back.messages()).toHaveLength(50))
  expect(new Set(back.messages().map(({ id }) => id))).toEqual(new Set(ids))
})

test('lets one callback that is always refused hold up no other', async () => {
  const { control, receive, receiver, number } = await startTrial()
  receiver.answer = (raw) => (raw.includes('poison') ? 500 : 200)
  await control('POST', 'callbacks', '{"poison":true}')
  // A fourth refusal in a row would pause a receiver that is taken to be away for 3 s.
  await until(() => expect(receiver.callbacks.length).toBeGreaterThan(3))
  for (let count = 1; count <= 3; count++) {
    await receive(number)
    await until(() => expect(receiver.messages()).toHaveLength(count))
  }
})

test('asks a receiver whether it is ours as soon as it is there', async () => {
  const { control, receiver } = await startTrial()
  await until(async () => expect((await control('GET', 'callbacks')).body['verified']).toBe(true))

  const wrong = await startTrial({ verifyToken: 'other', callbackUrl: receiver.url })
  await until(async () => expect((await wrong.control('GET', 'callbacks')).body['verified']).toBe(false))

  const late = await startReceiver()
  await late.stop()
  const early = await startTrial({ callbackUrl: late.url })
  expect((await early.control('GET', 'callbacks')).body['verified']).toBeNull()
  onTestFinished((await startReceiver({ port: late.port })).stop)
  await until(async () => expect((await early.control('GET', 'callbacks')).body['verified']).toBe(true))
})
