import { expect, test } from 'vitest'
import { startTrial, type Trial } from '../trial.ts'

const body = { type: 'BODY', text: 'Your order is on its way.' }
const buttons = (...all: object[]) => ({ components: [body, { type: 'BUTTONS', buttons: all }] })
const reply = (text: string) => ({ type: 'QUICK_REPLY', text })
const url = (part: object = {}) => ({ type: 'URL', text: 'See', url: 'https://x.example/', ...part })
const bodyOf = (text: string, examples?: string[]) => ({
  components: [{ type: 'BODY', text, ...(examples && { example: { body_text: [examples] } }) }],
})

const create = (trial: Trial, part: object) =>
  trial.graph(trial.number, 'POST', `/v23.0/${trial.number.business_account_id}/message_templates`, {
    name: 'checked',
    language: 'en_US',
    category: 'UTILITY',
    components: [body],
    ...part,
  })

const accepted: Array<[string, object]> = [
  ['a body alone, in lower case', { category: 'utility', components: [{ type: 'body', text: 'Hello there' }] }],
  ['variables with examples', bodyOf('Hi {{1}}, order {{2}} shipped.', ['Ana', 'A1'])],
  [
    'named variables',
    {
      parameter_format: 'named',
      components: [
        {
          type: 'BODY',
          text: 'Hi {{first_name}}, welcome.',
          example: { body_text_named_params: [{ param_name: 'first_name', example: 'Ana' }] },
        },
      ],
    },
  ],
  [
    'header, footer and every kind of button',
    {
      components: [
        { type: 'HEADER', format: 'TEXT', text: 'Order {{1}}', example: { header_text: ['A1'] } },
        body,
        { type: 'FOOTER', text: 'Bye' },
        {
          type: 'BUTTONS',
          buttons: [
            reply('Yes'),
            reply('No'),
            url({ url: 'https://x.example/{{1}}', example: ['https://x.example/1'] }),
            url(),
            { type: 'PHONE_NUMBER', text: 'Call', phone_number: '+16505551234' },
            { type: 'COPY_CODE', example: 'C25' },
          ],
        },
      ],
    },
  ],
  [
    'an authentication template',
    {
      category: 'AUTHENTICATION',
      components: [
        { type: 'BODY', add_security_recommendation: true },
        { type: 'FOOTER', code_expiration_minutes: 10 },
        { type: 'BUTTONS', buttons: [{ type: 'OTP', otp_type: 'COPY_CODE', text: 'Copy' }] },
      ],
    },
  ],
]

test.for(accepted)('accepts %s', async ([, part]) => {
  expect(await create(await startTrial(), part)).toMatchObject({ status: 200 })
})

const refused: Array<[string, number | undefined, object]> = [
  ['a name with capitals', undefined, { name: 'Order' }],
  ['a name of 513', undefined, { name: 'a'.repeat(513) }],
  ['a language that is none', undefined, { language: 'english' }],
  ['a category that is none', undefined, { category: 'NEWS' }],
  ['a format that is none', undefined, { parameter_format: 'both' }],
  ['no components', undefined, { components: [] }],
  ['no body', 2388072, { components: [{ type: 'FOOTER', text: 'Bye' }] }],
  ['two bodies', undefined, { components: [body, body] }],
  ['an unknown component', undefined, { components: [body, { type: 'SIDEBAR' }] }],
  ['a body of 1,025', 2388040, bodyOf('a'.repeat(1025))],
  ['a variable at the start', 2388299, bodyOf('{{1}} is here', ['a'])],
  ['a variable at the end', 2388299, bodyOf('Here is {{1}}', ['a'])],
  ['a gap in the numbers', 2388072, bodyOf('Hi {{1}} and {{3}} there', ['a', 'b'])],
  ['a name among numbers', 2388072, bodyOf('Hi {{name}} there', ['a'])],
  ['a variable that is not closed', 2388072, bodyOf('Hi {{1} there')],
  ['variables that touch', 2388072, bodyOf('Hi you {{1}} {{2}} there', ['a', 'b'])],
  ['more variables than words', 2388293, bodyOf('Hi {{1}}, {{2}}, {{3}}.', ['a', 'b', 'c'])],
  ['a missing example', 2388072, bodyOf('Hi {{1}}, order {{2}} shipped.', ['Ana'])],
  ['a footer of 61', 2388040, { components: [body, { type: 'FOOTER', text: 'a'.repeat(61) }] }],
  ['a footer with a variable', 2388073, { components: [body, { type: 'FOOTER', text: 'Bye {{1}}' }] }],
  ['a header of 61', 2388040, { components: [body, { type: 'HEADER', format: 'TEXT', text: 'a'.repeat(61) }] }],
  [
    'two variables in a header',
    2388047,
    {
      components: [
        body,
        { type: 'HEADER', format: 'TEXT', text: 'a {{1}} b {{2}} c', example: { header_text: ['1', '2'] } },
      ],
    },
  ],
  ['a header with a file but no sample', 2388047, { components: [body, { type: 'HEADER', format: 'IMAGE' }] }],
  [
    'a handle that was never made',
    2388047,
    { components: [body, { type: 'HEADER', format: 'IMAGE', example: { header_handle: ['4::abc'] } }] },
  ],
  ['eleven buttons', undefined, buttons(...Array.from({ length: 11 }, (_, at) => reply(`${at}`)))],
  ['three links', undefined, buttons(url(), url(), url())],
  ['a label of 26', 2388040, buttons(reply('a'.repeat(26)))],
  ['a link that is none', undefined, buttons(url({ url: 'see here' }))],
  ['a variable within a link', undefined, buttons(url({ url: 'https://x.example/{{1}}/a', example: ['a'] }))],
  ['a link without its example', undefined, buttons(url({ url: 'https://x.example/{{1}}' }))],
  ['quick replies apart', undefined, buttons(reply('a'), url(), reply('b'))],
  ['a code of 16', 2388040, buttons({ type: 'COPY_CODE', example: 'a'.repeat(16) })],
  [
    'two phone numbers',
    undefined,
    buttons(...[1, 2].map((n) => ({ type: 'PHONE_NUMBER', text: 'a', phone_number: `+${n}` }))),
  ],
  ['text in an authentication template', 2388072, { category: 'AUTHENTICATION', components: [body] }],
]

test('refuses what breaks a rule, with the subcode where one is known', async () => {
  const trial = await startTrial()
  for (const [name, subcode, part] of refused) {
    const { status, body: answer } = await create(trial, part)
    expect.soft({ status, error: answer.error }, name).toMatchObject({
      status: 400,
      error: { code: 100, ...(subcode !== undefined && { error_subcode: subcode }) },
    })
  }
})
