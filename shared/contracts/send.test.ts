import { expect, test } from 'vitest'
import { faultOf } from '../api/faults.ts'
import { Problem } from '../api/problem.ts'
import { sendMessage } from './messaging.ts'

const read = (body: object) => (sendMessage.variant?.(body) ?? sendMessage.body).safeParse(body)

function parse(body: object) {
  const { success, data, error } = read(body)
  if (!success) throw faultOf(error, 'body')
  return data as Record<string, unknown>
}

function paramOf(body: object): string | undefined {
  try {
    parse(body)
    return 'none'
  } catch (err) {
    expect(err).toBeInstanceOf(Problem)
    expect((err as Problem).code).toBe('invalid_field_value')
    return (err as Problem).param
  }
}

const to = '+15550123456'
const send = (type: string, block: unknown, more: object = {}) => ({
  messaging_product: 'chat',
  to,
  type,
  [type]: block,
  ...more,
})
const text = { body: 'hello' }
const link = 'https://example.com/a'
const reply = (id: string, title = id) => ({ type: 'reply', reply: { id, title } })
const buttons = (list: object[], more: object = {}) =>
  send('interactive', { type: 'reply_buttons', body: { text: 'Pick' }, action: { buttons: list }, ...more })
const cta = (parameters: object) =>
  send('interactive', { type: 'cta_url', body: { text: 'Go' }, action: { name: 'cta_url', parameters } })
const template = (components: unknown, more: object = {}) =>
  send('template', { name: 'order_ok', language: 'en_US', components, ...more })
const money = (more: object) => ({
  type: 'currency',
  currency: { fallback_value: '9 $', code: 'USD', amount_1000: 9_000, ...more },
})

test.each([
  ['neither type nor status', { messaging_product: 'chat', to }, 'type'],
  ['both type and status', { ...send('text', text), status: 'read' }, 'type'],
  ['a receipt with a type', { type: 'text', status: 'read', message_id: 'wamid.1' }, 'type'],
  ['a receipt without its status', { message_id: 'wamid.1' }, 'status'],
  ['an unknown type', send('sticker', {}), 'type'],
  ['another product', send('text', text, { messaging_product: 'whatsapp' }), 'messaging_product'],
  ['no product', send('text', text, { messaging_product: undefined }), 'messaging_product'],
  ['no recipient', send('text', text, { to: undefined }), 'to'],
  ['a language without a code', template([], { language: {} }), 'template.language.code'],
  [
    'a policy of the platform’s past',
    template([], { language: { code: 'en', policy: 'fallback' } }),
    'template.language.policy',
  ],
  ['a group', send('text', text, { recipient_type: 'group' }), 'recipient_type'],
  ['a missing block', { messaging_product: 'chat', to, type: 'text' }, 'text'],
  ['an empty text', send('text', { body: '' }), 'text.body'],
  ['4,097 astral characters', send('text', { body: '😀'.repeat(4097) }), 'text.body'],
  ['a preview that is no boolean', send('text', { body: 'a', preview_url: 'yes' }), 'text.preview_url'],
  ['a context without an id', send('text', text, { context: {} }), 'context.message_id'],
  ['neither link nor id', send('image', { caption: 'a' }), 'image.link'],
  ['both link and id', send('image', { link, id: '1' }), 'image.link'],
  ['a link that is none', send('video', { link: 'ftp://example.com/a' }), 'video.link'],
  ['a long caption', send('document', { link, caption: 'a'.repeat(1025) }), 'document.caption'],
  ['a link to a host of 400 characters', send('video', { link: `https://${'字'.repeat(400)}/` }), 'video.link'],
  ['voice that is no boolean', send('audio', { link, voice: 1 }), 'audio.voice'],
  ['two emojis', send('reaction', { message_id: 'wamid.1', emoji: '👍👍' }), 'reaction.emoji'],
  ['a letter for an emoji', send('reaction', { message_id: 'wamid.1', emoji: 'a' }), 'reaction.emoji'],
  ['a reaction without an emoji', send('reaction', { message_id: 'wamid.1' }), 'reaction.emoji'],
  [
    'a context beside a reaction',
    send('reaction', { message_id: 'wamid.1', emoji: '👍' }, { context: { message_id: 'wamid.2' } }),
    'context',
  ],
  ['an unknown interactive type', send('interactive', { type: 'list', body: { text: 'a' } }), 'interactive.type'],
  ['no buttons', buttons([]), 'interactive.action.buttons'],
  ['four buttons', buttons(['a', 'b', 'c', 'd'].map((id) => reply(id))), 'interactive.action.buttons'],
  ['a long title', buttons([reply('a'), reply('b', 'a'.repeat(21))]), 'interactive.action.buttons[1].reply.title'],
  ['an id with a space at its end', buttons([reply('a '), reply('b')]), 'interactive.action.buttons[0].reply.id'],
  ['an id twice', buttons([reply('a', 'A'), reply('a', 'B')]), 'interactive.action.buttons[1].reply.id'],
  ['a title twice', buttons([reply('a', 'A'), reply('b', 'A')]), 'interactive.action.buttons[1].reply.title'],
  ['a long footer', buttons([reply('a')], { footer: { text: 'a'.repeat(61) } }), 'interactive.footer.text'],
  [
    'a header image without a source',
    buttons([reply('a')], { header: { type: 'image', image: {} } }),
    'interactive.header.image.link',
  ],
  ['a long label', cta({ display_text: 'a'.repeat(21), url: link }), 'interactive.action.parameters.display_text'],
  ['a url that is none', cta({ display_text: 'a', url: 'nowhere' }), 'interactive.action.parameters.url'],
  ['a template name in capitals', template([], { name: 'Order' }), 'template.name'],
  ['a language of one letter', template([], { language: 'e' }), 'template.language'],
  ['an unknown component', template([{ type: 'carousel' }]), 'template.components[0].type'],
  ['a button without an index', template([{ type: 'button', sub_type: 'url' }]), 'template.components[0].index'],
  [
    'a parameter without its block',
    template([{ type: 'body', parameters: [{ type: 'text', text: 'a' }, { type: 'currency' }] }]),
    'template.components[0].parameters[1].currency',
  ],
  [
    'a file in the body of a template',
    template([{ type: 'body', parameters: [{ type: 'image', image: { link } }] }]),
    'template.components[0].parameters[0].type',
  ],
  ['a receipt without a message', { status: 'read' }, 'message_id'],
  ['a receipt of another status', { status: 'delivered', message_id: 'wamid.1' }, 'status'],
  [
    'another typing indicator',
    { status: 'read', message_id: 'wamid.1', typing_indicator: { type: 'audio' } },
    'typing_indicator.type',
  ],
])('%s is refused with its field', (_, body, param) => {
  expect(paramOf(body)).toBe(param)
})

test.each([
  [
    'a long link',
    send('image', { link: `${link}${'a'.repeat(2048)}` }),
    'image.link: must have at most 2048 characters.',
  ],
  [
    'the index of no button',
    template([{ type: 'button', sub_type: 'url', index: '02' }]),
    'template.components[0].index: must be 0 to 9.',
  ],
  [
    'a currency in small letters',
    template([{ type: 'body', parameters: [money({ code: 'usd' })] }]),
    'template.components[0].parameters[0].currency.code: must be three capitals such as USD.',
  ],
])('%s is refused in words', (_, body, message) => {
  expect(() => parse(body)).toThrow(message)
})

test.each([
  send('text', { body: '😀'.repeat(4096) }),
  send('reaction', { message_id: 'wamid.1', emoji: '👩‍👩‍👧‍👦' }),
  send('reaction', { message_id: 'wamid.1', emoji: '' }),
  buttons([reply('a'), reply('b'), reply('c')], { header: { type: 'text', text: 'Hi' }, footer: { text: 'f' } }),
  cta({ display_text: 'Open', url: link }),
  { status: 'read', message_id: 'wamid.1', typing_indicator: { type: 'text' } },
])('what the platform takes is taken: %j', (body) => {
  expect(paramOf(body)).toBe('none')
})

test('words of a template are taken in either case, its parameters with their own block alone, and unknown keys nowhere', () => {
  const body = template(
    [
      { type: 'BODY', parameters: [{ type: 'TEXT', text: 'Ana', payload: 'x', more: 1 }] },
      { type: 'Button', sub_type: 'URL', index: 1, parameters: [{ type: 'text', text: 'suffix' }] },
    ],
    { name: ' order_ok ' },
  )
  expect(parse(body)['template']).toEqual({
    name: 'order_ok',
    language: { code: 'en_US' },
    components: [
      { type: 'body', parameters: [{ type: 'text', text: 'Ana' }] },
      { type: 'button', sub_type: 'url', index: '1', parameters: [{ type: 'text', text: 'suffix' }] },
    ],
  })
})

test.each(['image', 'video', 'document'])('an empty caption of %s is none', (type) => {
  expect(JSON.stringify(parse(send(type, { link, caption: '' }))[type])).toBe(JSON.stringify({ link }))
})

test('the caption of an audio message is taken and not sent on', () => {
  expect(parse(send('audio', { link, caption: '' }))['audio']).toEqual({ link })
  expect(parse(send('audio', { link, caption: 'listen', voice: true }))['audio']).toEqual({ link, voice: true })
})

test.each(['', '1'.repeat(161)])('a recipient of %j is no phone number', (recipient) => {
  expect(() => parse(send('text', text, { to: recipient }))).toThrow(
    expect.objectContaining({ failure: 'invalid_phone_number', param: 'to' }),
  )
})

test('an emoji that is too long is looked at no further', () => {
  const { error } = read(send('reaction', { message_id: 'wamid.1', emoji: '👍'.repeat(65) }))
  expect(error?.issues.map(({ code }) => code)).toEqual(['too_big'])
})
