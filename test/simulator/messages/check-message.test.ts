import { expect, test } from 'vitest'
import { GraphError } from '../graph/graph-error.ts'
import { checkMessage } from './check-message.ts'

const reply = (id: string, title: string) => ({ type: 'reply', reply: { id, title } })
const buttons = (...all: object[]) => ({
  type: 'interactive',
  interactive: { type: 'button', body: { text: 'Pick' }, action: { buttons: all } },
})
const link = (interactive: object, parameters: object = {}) => ({
  type: 'interactive',
  interactive: {
    type: 'cta_url',
    body: { text: 'See' },
    action: { name: 'cta_url', parameters: { display_text: 'Open', url: 'https://x.example/', ...parameters } },
    ...interactive,
  },
})
const template = (...components: object[]) => ({
  type: 'template',
  template: { name: 'order_ok', language: { code: 'en_US' }, components },
})
const image = { link: 'https://x.example/a.png' }

const accepted: Array<[string, object]> = [
  ['a text of 4,096 characters', { text: { body: '😀'.repeat(4096), preview_url: true } }],
  ['a text that quotes', { type: 'text', text: { body: 'a' }, context: { message_id: 'wamid.x' } }],
  ['an image by link', { type: 'image', image: { ...image, caption: 'c' } }],
  ['a document by id', { type: 'document', document: { id: '1037', filename: 'a.pdf', caption: 'c' } }],
  ['a video', { type: 'video', video: image }],
  ['a voice note', { type: 'audio', audio: { id: '1037', voice: true } }],
  ['a sticker', { type: 'sticker', sticker: { id: '1037' } }],
  ['a reaction', { type: 'reaction', reaction: { message_id: 'wamid.x', emoji: '👩‍👩‍👧' } }],
  ['a reaction taken away', { type: 'reaction', reaction: { message_id: 'wamid.x', emoji: '' } }],
  ['three reply buttons', buttons(reply('a', 'A'), reply('b', 'B'), reply('c', 'C'))],
  ['a link button with header and footer', link({ header: { type: 'image', image }, footer: { text: 'f' } })],
  [
    'a template with every kind of parameter',
    template(
      { type: 'HEADER', parameters: [{ type: 'document', document: { ...image, filename: 'i.pdf' } }] },
      {
        type: 'body',
        parameters: [
          { type: 'text', text: 'Ana', parameter_name: 'first' },
          { type: 'currency', currency: { fallback_value: '$9.90', code: 'USD', amount_1000: 9900 } },
          { type: 'date_time', date_time: { fallback_value: 'May 1' } },
        ],
      },
      { type: 'button', sub_type: 'QUICK_REPLY', index: 0, parameters: [{ type: 'payload', payload: 'p' }] },
      { type: 'button', sub_type: 'copy_code', index: '1', parameters: [{ type: 'coupon_code', coupon_code: 'C' }] },
    ),
  ],
]

test.for(accepted)('accepts %s', ([, message]) => {
  expect(() => checkMessage({ path: '', fields: { ...message } })).not.toThrow()
})

const refused: Array<[text: string, message: object]> = [
  [
    '(#100) Param type must be one of {AUDIO, DOCUMENT, IMAGE, INTERACTIVE, REACTION, STICKER, TEMPLATE, TEXT, VIDEO} - got "fax".',
    { type: 'fax' },
  ],
  ['(#100) The parameter text is required.', { type: 'text' }],
  ['(#100) Param text must be a JSON object.', { text: 'hi' }],
  ["(#100) The parameter text['body'] is required.", { text: { body: '' } }],
  ["(#100) Param text['body'] must be a string.", { text: { body: 1 } }],
  ["(#100) Param text['body'] must be at most 4096 characters long.", { text: { body: 'a'.repeat(4097) } }],
  ["(#100) Param text['preview_url'] must be a boolean.", { text: { body: 'a', preview_url: 'yes' } }],
  ['(#100) Unexpected key "boddy" on param "text".', { text: { body: 'a', boddy: 'b' } }],
  [
    '(#100) Param recipient_type must be one of {INDIVIDUAL} - got "group".',
    { recipient_type: 'group', text: { body: 'a' } },
  ],
  [
    '(#100) Param biz_opaque_callback_data must be at most 512 characters long.',
    { biz_opaque_callback_data: 'a'.repeat(513), text: { body: 'a' } },
  ],
  ["(#100) The parameter context['message_id'] is required.", { context: {}, text: { body: 'a' } }],
  [
    'A reaction cannot be a contextual reply.',
    { type: 'reaction', context: { message_id: 'm' }, reaction: { message_id: 'm', emoji: '👍' } },
  ],
  ["(#100) The parameter reaction['emoji'] is required.", { type: 'reaction', reaction: { message_id: 'm' } }],
  ["Param reaction['emoji'] must be one emoji.", { type: 'reaction', reaction: { message_id: 'm', emoji: '👍👍' } }],
  ["Param reaction['emoji'] must be one emoji.", { type: 'reaction', reaction: { message_id: 'm', emoji: 'x' } }],
  ['Param image must have exactly one of id and link.', { type: 'image', image: { caption: 'c' } }],
  ['Param image must have exactly one of id and link.', { type: 'image', image: { id: '1', ...image } }],
  ["(#100) Param image['link'] is not a valid URI.", { type: 'image', image: { link: 'ftp://x.example/' } }],
  [
    "(#100) Param image['id'] is not a valid whatsapp business account media attachment ID",
    { type: 'image', image: { id: 'med_1' } },
  ],
  [
    "(#100) Param video['caption'] must be at most 1024 characters long.",
    { type: 'video', video: { ...image, caption: 'a'.repeat(1025) } },
  ],
  ['(#100) Unexpected key "caption" on param "audio".', { type: 'audio', audio: { id: '1', caption: 'c' } }],
  ['(#100) Unexpected key "filename" on param "image".', { type: 'image', image: { id: '1', filename: 'f' } }],
  [
    '(#100) Param interactive[\'type\'] must be one of {BUTTON, CTA_URL} - got "reply_buttons".',
    { type: 'interactive', interactive: { type: 'reply_buttons' } },
  ],
  ['Invalid buttons count. Min allowed buttons: 1, Max allowed buttons: 3', buttons()],
  [
    'Invalid buttons count. Min allowed buttons: 1, Max allowed buttons: 3',
    buttons(...['a', 'b', 'c', 'd'].map((id) => reply(id, id))),
  ],
  ['Button title length invalid. Min length: 1, Max length: 20', buttons(reply('a', 'a'.repeat(21)))],
  ['Button id length invalid. Min length: 1, Max length: 256', buttons(reply('a'.repeat(257), 'a'))],
  ['Button id must not have leading or trailing spaces', buttons(reply('a ', 'A'))],
  ['Button title must be unique in the message', buttons(reply('a', 'A'), reply('b', 'A'))],
  ['Button id must be unique in the message', buttons(reply('a', 'A'), reply('a', 'B'))],
  ["(#100) The parameter interactive['action']['buttons'][0]['reply']['title'] is required.", buttons(reply('a', ''))],
  ["(#100) The parameter interactive['body'] is required.", link({ body: undefined })],
  ['Body text length invalid. Min length: 1, Max length: 1024', link({ body: { text: 'a'.repeat(1025) } })],
  ['Footer text length invalid. Min length: 1, Max length: 60', link({ footer: { text: 'a'.repeat(61) } })],
  [
    'Header text length invalid. Min length: 1, Max length: 60',
    link({ header: { type: 'text', text: 'a'.repeat(61) } }),
  ],
  ['Text cannot be null for header type text', link({ header: { type: 'text' } })],
  ["(#100) The parameter interactive['header']['image'] is required.", link({ header: { type: 'image' } })],
  ['Button display text length invalid. Min length: 1, Max length: 20', link({}, { display_text: 'a'.repeat(21) })],
  ['Button url must be a valid URL', link({}, { url: 'x' })],
  ["(#100) The parameter template['language'] is required.", { type: 'template', template: { name: 'a' } }],
  [
    "(#100) Param template['language'] must be a JSON object.",
    { type: 'template', template: { name: 'a', language: 'en' } },
  ],
  [
    "(#100) Param template['components'][0]['type'] must be one of {HEADER, BODY, FOOTER, BUTTON} - got \"tail\".",
    template({ type: 'tail' }),
  ],
  ["(#100) The parameter template['components'][0]['sub_type'] is required.", template({ type: 'button', index: 0 })],
  [
    "(#100) The parameter template['components'][0]['index'] is required.",
    template({ type: 'button', sub_type: 'url' }),
  ],
  [
    "Parameter 'text' is mandatory for component parameter type 'text'",
    template({ type: 'body', parameters: [{ type: 'text' }] }),
  ],
  [
    "Param template['components'][0]['parameters'][0]['currency']['amount_1000'] must be an integer.",
    template({
      type: 'body',
      parameters: [{ type: 'currency', currency: { fallback_value: '1', code: 'USD', amount_1000: '1' } }],
    }),
  ],
  [
    "(#100) Param template['components'][0]['parameters'][0]['type'] must be one of {TEXT, CURRENCY, DATE_TIME} - got \"image\".",
    template({ type: 'body', parameters: [{ type: 'image', image }] }),
  ],
]

test.for(refused)('refuses with: %s', ([text, message]) => {
  const check = () => checkMessage({ path: '', fields: { ...message } })
  expect(check).toThrow(GraphError)
  expect(refusalOf(check)).toBe(text)
})

/** The details where there are some, since the message then is the code's title alone. */
function refusalOf(check: () => unknown) {
  try {
    return check()
  } catch (err) {
    return err instanceof GraphError ? (err.detail.details ?? err.message) : err
  }
}
