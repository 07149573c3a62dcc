import { expect, test } from 'vitest'
import { contentsOf } from './contents.ts'

test.each([
  [
    'a reply beside one that is null',
    { type: 'interactive', interactive: { button_reply: null, list_reply: { title: 'Yes' } } },
  ],
  [
    'a reply beside one of another shape',
    { type: 'interactive', interactive: { button_reply: { title: 'Yes' }, list_reply: 7 } },
  ],
  ['a card beside one without a name', { type: 'contacts', contacts: [{ name: { formatted_name: 'Yes' } }, {}, null] }],
])('%s has its content', (_, message) => {
  expect(contentsOf(message)).toMatchObject({ type: message.type, content: 'Yes' })
})
