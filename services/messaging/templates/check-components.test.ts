import { describe, expect, test } from 'vitest'
import { checkComponents, type Component, type Draft } from './check-components.ts'

const body: Component = { type: 'BODY', text: 'Hello.' }
const check = (components: Component[], more: Partial<Draft> = {}) =>
  checkComponents({ category: 'UTILITY', format: 'positional', components, ...more })
const refusal = (param: string) => expect.objectContaining({ failure: 'invalid_field_value', param })
const withHeader = (header: object) => [{ type: 'HEADER', ...header }, body]
const withButtons = (...buttons: object[]) => [body, { type: 'BUTTONS', buttons }]
const reply = (text = 'Ok') => ({ type: 'QUICK_REPLY', text })
const link = (url = 'https://x.example', more: object = {}) => ({ type: 'URL', text: 'See', url, ...more })

test('the template of the platform’s own documentation passes, in either case', () => {
  const components = [
    { type: 'HEADER', format: 'TEXT', text: 'Order {{1}}', example: { header_text: ['A1'] } },
    { type: 'body', text: 'Hi {{1}}, order {{2}} shipped.', example: { body_text: [['Ana', 'A1']] } },
    { type: 'FOOTER', text: 'Bye' },
    { type: 'BUTTONS', buttons: [reply(), link('https://x/{{1}}', { example: ['https://x/1'] })] },
  ]
  expect(() => check(components)).not.toThrow()
})

test.each<[string, Component[], Partial<Draft>]>([
  ['60 code points of header', withHeader({ format: 'TEXT', text: '😀'.repeat(60) }), {}],
  ['a place in the header', withHeader({ format: 'LOCATION' }), {}],
  ['a sample by handle', withHeader({ format: 'IMAGE', example: { header_handle: ['4::a'] } }), {}],
  ['a sample by address', withHeader({ format: 'image', example: { header_url: 'https://x.example/a.png' } }), {}],
  ['10 quick replies', withButtons(...Array.from({ length: 10 }, () => reply())), {}],
  ['replies after the others', withButtons(link(), reply(), reply()), {}],
  ['a code', withButtons({ type: 'COPY_CODE', example: 'C25' }), {}],
  ['a number', withButtons({ type: 'PHONE_NUMBER', text: 'Call', phone_number: '+1 555 000 1111' }), {}],
  ['a code template', [{ type: 'BODY', add_security_recommendation: true }, { type: 'FOOTER', code_expiration_minutes: 5 }, { type: 'BUTTONS', buttons: [{ type: 'OTP', otp_type: 'COPY_CODE' }] }], { category: 'AUTHENTICATION' }], // prettier-ignore
  ['names', [{ type: 'BODY', text: 'Hi {{first_name}}!', example: { body_text_named_params: [{ param_name: 'first_name', example: 'Ana' }] } }], { format: 'named' }], // prettier-ignore
  ['names, and a link whose variable is a number', [{ type: 'BODY', text: 'Hi {{first_name}}!', example: { body_text_named_params: [{ param_name: 'first_name', example: 'Ana' }] } }, { type: 'BUTTONS', buttons: [link('https://x/{{1}}', { example: ['https://x/1'] })] }], { format: 'named' }], // prettier-ignore
  ['a name in the header', [{ type: 'HEADER', format: 'TEXT', text: 'Hi {{name}}', example: { header_text_named_params: [{ param_name: 'name', example: 'Ana' }] } }, body], { format: 'named' }], // prettier-ignore
  ['a document', withHeader({ format: 'DOCUMENT', example: { header_handle: ['4::a'] } }), {}],
  ['1,024 of body', [{ type: 'BODY', text: 'x'.repeat(1024) }], {}],
  ['60 of footer', [body, { type: 'FOOTER', text: 'x'.repeat(60) }], {}],
  ['a text of its own in a code template', [{ type: 'BODY', text: '{{1}} is your code.' }], { category: 'AUTHENTICATION' }], // prettier-ignore
  ['25 of label', withButtons(reply('x'.repeat(25))), {}],
  ['2,000 of link', withButtons(link(`https://x/${'a'.repeat(1990)}`)), {}],
  ['20 of number', withButtons({ type: 'PHONE_NUMBER', text: 'Call', phone_number: '1'.repeat(20) }), {}],
  ['15 of code, in a list', withButtons({ type: 'COPY_CODE', example: ['x'.repeat(15)] }), {}],
  ['a variable twice', [{ type: 'BODY', text: 'A {{1}} b {{1}} c', example: { body_text: [['x']] } }], {}],
])('%s passes', (_what, components, more) => {
  expect(() => check(components, more)).not.toThrow()
})

test.each(['FLOW', 'CATALOG', 'MPM', 'SPM', 'VOICE_CALL'])('a button of the type %s passes', (type) => {
  expect(() => check(withButtons({ type, text: 'Go' }))).not.toThrow()
})

test.each(['LIMITED_TIME_OFFER', 'CAROUSEL', 'CALL_PERMISSION_REQUEST'])('a component %s passes', (type) => {
  expect(() => check([body, { type }])).not.toThrow()
})

test('texts of their own have their lengths in a template for codes, too', () => {
  const more = { category: 'AUTHENTICATION' } as const
  expect(() => check([{ type: 'BODY', text: 'x'.repeat(1025) }], more)).toThrow(refusal('components[0].text'))
  const footer = { type: 'FOOTER', text: 'x'.repeat(61) }
  expect(() => check([{ type: 'BODY' }, footer], more)).toThrow(refusal('components[1].text'))
})

describe('a component', () => {
  test.each<[string, Component[], string]>([
    ['of no body', [{ type: 'FOOTER', text: 'Bye' }], 'components'],
    ['of two bodies', [body, body], 'components[1].type'],
    ['of a type that is none', [body, { type: 'LIST' }], 'components[1].type'],
    ['of a header of no format', withHeader({ text: 'a' }), 'components[0].format'],
    ['of a header over 60', withHeader({ format: 'TEXT', text: 'x'.repeat(61) }), 'components[0].text'],
    ['of a header of two variables', withHeader({ format: 'TEXT', text: '{{1}} and {{2}}' }), 'components[0].text'],
    [
      'of a header without its example',
      withHeader({ format: 'TEXT', text: 'a {{1}}' }),
      'components[0].example.header_text',
    ],
    ['of a medium without a sample', withHeader({ format: 'VIDEO' }), 'components[0].example.header_url'],
    [
      'of two samples',
      withHeader({ format: 'VIDEO', example: { header_handle: ['a'], header_url: 'https://x' } }),
      'components[0].example.header_url',
    ],
    [
      'of a handle outside of a list',
      withHeader({ format: 'VIDEO', example: { header_handle: '4::a' } }),
      'components[0].example.header_handle',
    ],
    ['of an example that is none', withHeader({ format: 'VIDEO', example: 'a' }), 'components[0].example'],
    ['of an empty body', [{ type: 'BODY', text: '  ' }], 'components[0].text'],
    ['of a body over 1024', [{ type: 'BODY', text: 'x'.repeat(1025) }], 'components[0].text'],
    ['of a footer over 60', [body, { type: 'FOOTER', text: 'x'.repeat(61) }], 'components[1].text'],
    ['of a footer with a variable', [body, { type: 'FOOTER', text: 'a {{1}} b' }], 'components[1].text'],
  ])('%s is refused', (_what, components, param) => {
    expect(() => check(components)).toThrow(refusal(param))
  })
})

describe('variables', () => {
  const text = (value: string, texts: unknown = [['a', 'b', 'c']]) => [
    { type: 'BODY', text: value, example: { body_text: texts } },
  ]
  test.each<[string, Component[], string]>([
    ['that do not begin with 1', text('a {{2}} b'), 'components[0].text'],
    ['with a gap', text('a {{1}} b {{3}} c'), 'components[0].text'],
    ['first', text('{{1}} b'), 'components[0].text'],
    ['last', text('a {{1}} '), 'components[0].text'],
    ['side by side', text('a {{1}} {{2}} b'), 'components[0].text'],
    ['with a name where numbers are meant', text('a {{name}} b'), 'components[0].text'],
    ['that do not end', text('a {{1} b'), 'components[0].text'],
    ['with an example too few', text('a {{1}} b {{2}} c', [['x']]), 'components[0].example.body_text'],
    ['with an empty example', text('a {{1}} b', [['']]), 'components[0].example.body_text'],
    ['without examples', [{ type: 'BODY', text: 'a {{1}} b' }], 'components[0].example.body_text'],
  ])('%s are refused', (_what, components, param) => {
    expect(() => check(components)).toThrow(refusal(param))
  })

  const named = (value: string, params?: unknown) => [
    { type: 'BODY', text: value, example: { body_text_named_params: params } },
  ]
  test.each<[string, Component[], string]>([
    ['in capitals', named('a {{Name}} b'), 'components[0].text'],
    ['without examples', named('a {{name}} b'), 'components[0].example.body_text_named_params'],
    ['with one example too few', named('a {{x}} b', []), 'components[0].example.body_text_named_params'],
    [
      'with another’s example',
      named('a {{x}} b', [{ param_name: 'y', example: 'z' }]),
      'components[0].example.body_text_named_params[0].param_name',
    ],
    [
      'with an example of nothing',
      named('a {{x}} b', [{ param_name: 'x' }]),
      'components[0].example.body_text_named_params[0].example',
    ],
  ])('with names, %s are refused', (_what, components, param) => {
    expect(() => check(components, { format: 'named' })).toThrow(refusal(param))
  })
})

describe('buttons', () => {
  const phone = { type: 'PHONE_NUMBER', text: 'Call', phone_number: '+15550001111' }
  const code = { type: 'COPY_CODE', example: 'C25' }
  test.each<[string, Component[], string]>([
    ['none', [body, { type: 'BUTTONS', buttons: [] }], 'components[1].buttons'],
    ['no list', [body, { type: 'BUTTONS' }], 'components[1].buttons'],
    ['eleven', withButtons(...Array.from({ length: 11 }, () => reply())), 'components[1].buttons'],
    ['no object', [body, { type: 'BUTTONS', buttons: ['a'] }], 'components[1].buttons[0]'],
    ['of a type that is none', withButtons({ type: 'LINK', text: 'a' }), 'components[1].buttons[0].type'],
    ['a third link', withButtons(link(), link(), link()), 'components[1].buttons[2].type'],
    ['a second number', withButtons(phone, phone), 'components[1].buttons[1].type'],
    ['a second code', withButtons(code, code), 'components[1].buttons[1].type'],
    ['a label over 25', withButtons(reply('x'.repeat(26))), 'components[1].buttons[0].text'],
    ['a label with a variable', withButtons(reply('a {{1}} b')), 'components[1].buttons[0].text'],
    ['a link over 2000', withButtons(link(`https://x/${'a'.repeat(2000)}`)), 'components[1].buttons[0].url'],
    ['a link that is none', withButtons(link('nowhere')), 'components[1].buttons[0].url'],
    ['a link to a host of 400', withButtons(link(`https://${'字'.repeat(400)}/`)), 'components[1].buttons[0].url'],
    ['a variable inside a link', withButtons(link('https://x/{{1}}/y')), 'components[1].buttons[0].url'],
    ['a name in a link', withButtons(link('https://x/{{order_id}}', { example: ['https://x/1'] })), 'components[1].buttons[0].url'], // prettier-ignore
    ['another number in a link', withButtons(link('https://x/{{2}}', { example: ['https://x/1'] })), 'components[1].buttons[0].url'], // prettier-ignore
    ['a link without its example', withButtons(link('https://x/{{1}}')), 'components[1].buttons[0].example'],
    [
      'a number over 20',
      withButtons({ ...phone, phone_number: '1'.repeat(21) }),
      'components[1].buttons[0].phone_number',
    ],
    [
      'a number that is none',
      withButtons({ ...phone, phone_number: 'call me' }),
      'components[1].buttons[0].phone_number',
    ],
    ['a code over 15', withButtons({ ...code, example: 'x'.repeat(16) }), 'components[1].buttons[0].example'],
    ['scattered replies', withButtons(reply(), link(), reply()), 'components[1].buttons[2].type'],
  ])('%s: refused', (_what, components, param) => {
    for (const format of ['positional', 'named'] as const)
      expect(() => check(components, { format })).toThrow(refusal(param))
  })
})

const call = { type: 'PHONE_NUMBER', text: 'Call', phone_number: '+15550123456' }

test.each<[string, Component[]]>([
  [
    'components[0].example.body_text must give 1 example, in the form [["…"]].',
    [{ type: 'BODY', text: 'a {{1}} b', example: { body_text: ['Ana'] } }],
  ],
  [
    'components[0].example.body_text must give 2 examples, one a variable, in the form [["…", …]].',
    [{ type: 'BODY', text: 'a {{1}} b {{2}} c', example: { body_text: ['Ana', 'A1'] } }],
  ],
  [
    'components[0].example.header_handle must give 1 example, in the form ["…"].',
    withHeader({ format: 'VIDEO', example: { header_handle: '4::a' } }),
  ],
  ['components[1].buttons[1].type is PHONE_NUMBER more than once.', [body, { type: 'BUTTONS', buttons: [call, call] }]],
])('says what is allowed: %s', (message, components) => {
  expect(() => check(components)).toThrow(message)
})
