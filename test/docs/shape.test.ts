import { expect, test } from 'vitest'
import { differences } from './shape.ts'

const shown = {
  id: 'msg_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD',
  to: '+15550123456',
  at: '2026-03-01T12:00:00.000Z',
  upstream: 'wamid.…',
  list: [{ name: 'VIP' }],
  none: null,
}
const real = {
  id: 'msg_01M7WH7R6NDSBDR34WQF1N7DFW',
  to: '+15557654321',
  at: '2026-11-20T13:09:51.957Z',
  upstream: 'wamid.HBgL',
  list: [{ name: 'VIP' }],
  none: null,
}

test('an answer of the same shape stands for another', () => expect(differences(shown, real)).toEqual([]))

test.each([
  ['a field that is not shown', { ...real, more: 1 }],
  ['a field that is not there', { ...real, none: undefined, to: 5 }],
  ['an id of another kind', { ...real, id: 'cnv_01M7WH7R6NDSBDR34WQF1N7DFW' }],
  ['a number without its plus', { ...real, to: '15557654321' }],
  ['another word', { ...real, list: [{ name: 'VOP' }] }],
  ['a longer list', { ...real, list: [{ name: 'VIP' }, { name: 'VIP' }] }],
  ['something instead of nothing', { ...real, none: 'x' }],
])('%s is seen', (_, other) => expect(differences(shown, other)).not.toEqual([]))
