import { expect, test } from 'vitest'
import { startTrial, type Trial } from '../trial.ts'

const body = { type: 'BODY', text: 'Hi {{1}}, order {{2}} was shipped.' }
const text = (...texts: string[]) => ({ type: 'body', parameters: texts.map((each) => ({ type: 'text', text: each })) })

const make = (trial: Trial, part: object) =>
  trial.control('POST', 'templates', { phone_number_id: trial.number.phone_number_id, name: 'shipped', ...part })
const send = async (trial: Trial, components: object[], part: object = {}, envelope: object = {}) => {
  const template = { name: 'shipped', language: { code: 'en_US' }, components, ...part }
  const { status, body: answer } = await trial.send(trial.number, { type: 'template', template, ...envelope })
  return status === 200 ? 200 : [status, answer.error?.code]
}

test('sends what is approved in that language, filled in', async () => {
  const trial = await startTrial()
  await make(trial, { components: [body] })
  expect(await send(trial, [text('Ana', 'A1')])).toBe(200)
  expect(await send(trial, [text('Ana')])).toEqual([400, 132000])
  expect(await send(trial, [text('Ana', 'A1', 'more')])).toEqual([400, 132000])
  expect(await send(trial, [])).toEqual([400, 132000])
  expect(await send(trial, [text('Ana', 'a'.repeat(1024))])).toEqual([400, 132005])
  expect(await send(trial, [text('Ana', 'A1')], { language: { code: 'de' } })).toEqual([404, 132001])
  expect(await send(trial, [text('Ana', 'A1')], { name: 'other' })).toEqual([404, 132001])
  const other = await trial.addNumber()
  const elsewhere = { name: 'shipped', language: { code: 'en_US' }, components: [text('Ana', 'A1')] }
  expect(await trial.send(other, { type: 'template', template: elsewhere })).toMatchObject({ status: 404 })
})

test.for([
  ['PENDING', [404, 132001]],
  ['REJECTED', [404, 132001]],
  ['PAUSED', [400, 132015]],
  ['DISABLED', [400, 132016]],
  ['FLAGGED', 200],
] as const)('answers a template that is %s with %j', async ([status, expected]) => {
  const trial = await startTrial()
  await make(trial, { status, components: [body] })
  expect(await send(trial, [text('Ana', 'A1')])).toEqual(expected)
})

test('wants named parameters by their names, in any order', async () => {
  const trial = await startTrial()
  const named = { type: 'BODY', text: 'Hi {{first}}, order {{number}} was shipped.' }
  await make(trial, { parameter_format: 'NAMED', components: [named] })
  const parameters = (...names: Array<string | undefined>) => [
    { type: 'body', parameters: names.map((name) => ({ type: 'text', text: 'x', parameter_name: name })) },
  ]
  expect(await send(trial, parameters('number', 'first'))).toBe(200)
  expect(await send(trial, parameters('number', 'second'))).toEqual([400, 100])
  expect(await send(trial, parameters(undefined, undefined))).toEqual([400, 100])
  expect(await send(trial, parameters('first'))).toEqual([400, 132000])
})

test('wants the file of a header, of its kind', async () => {
  const trial = await startTrial()
  await make(trial, {
    components: [
      { type: 'HEADER', format: 'IMAGE' },
      { type: 'BODY', text: 'Look at this.' },
    ],
  })
  const header = (type: string) => ({ type: 'header', parameters: [{ type, [type]: { link: 'https://x.example/a' } }] })
  expect(await send(trial, [header('image')])).toBe(200)
  expect(await send(trial, [header('video')])).toEqual([400, 132012])
  expect(await send(trial, [])).toEqual([400, 132012])
})

test('wants what a button leaves open, and no button that is not there', async () => {
  const trial = await startTrial()
  const buttons = [
    { type: 'QUICK_REPLY', text: 'Ok' },
    { type: 'URL', text: 'See', url: 'https://x.example/{{1}}' },
    { type: 'COPY_CODE', example: 'C25' },
  ]
  await make(trial, {
    components: [
      { type: 'BODY', text: 'Look at this.' },
      { type: 'BUTTONS', buttons },
    ],
  })
  const button = (type: string, index: number, parameter: object) => ({
    type: 'button',
    sub_type: type,
    index: `${index}`,
    parameters: [parameter],
  })
  const link = button('url', 1, { type: 'text', text: 'suffix' })
  const code = button('copy_code', 2, { type: 'coupon_code', coupon_code: 'C25' })
  const reply = button('quick_reply', 0, { type: 'payload', payload: 'p' })
  expect(await send(trial, [link, code])).toBe(200)
  expect(await send(trial, [reply, link, code])).toBe(200)
  expect(await send(trial, [link])).toEqual([400, 131008])
  expect(await send(trial, [code])).toEqual([400, 131008])
  expect(await send(trial, [link, code, button('url', 0, { type: 'text', text: 'x' })])).toEqual([400, 132018])
  expect(await send(trial, [link, code, button('url', 3, { type: 'text', text: 'x' })])).toEqual([400, 132018])
})

test('sends a code to phones alone, and prices by category', async () => {
  const trial = await startTrial({ settings: { statuses: ['sent'] } })
  const buttons = [{ type: 'OTP', otp_type: 'COPY_CODE', text: 'Copy' }]
  await make(trial, { category: 'AUTHENTICATION', components: [{ type: 'BODY' }, { type: 'BUTTONS', buttons }] })
  const button = { type: 'button', sub_type: 'url', index: '0', parameters: [{ type: 'text', text: '123456' }] }
  const code = [text('123456'), button]
  expect(await send(trial, [text('123456')])).toEqual([400, 131008])
  expect(await send(trial, code, {}, { to: undefined, recipient: 'US.1349' })).toEqual([400, 131062])
  expect(await send(trial, code)).toBe(200)
  await trial.settled()
  expect(trial.receiver.statuses()).toMatchObject([{ status: 'sent', pricing: { category: 'authentication' } }])
})

test('says of a template what the settings say', async () => {
  const trial = await startTrial({ settings: { template_message_status: 'paused' } })
  const { body: answer } = await trial.send(trial.number, {
    type: 'template',
    template: { name: 'order_ok', language: { code: 'en_US' } },
  })
  expect(answer.messages).toMatchObject([{ message_status: 'paused' }])
})
