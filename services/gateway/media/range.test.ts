import { expect, test } from 'vitest'
import { rangeOf } from './range.ts'

test.each([
  ['bytes=0-0', 10, { start: 0, end: 0 }],
  ['bytes=2-4', 10, { start: 2, end: 4 }],
  ['bytes=4-4', 10, { start: 4, end: 4 }],
  ['bytes=9-10', 10, { start: 9, end: 9 }],
  ['bytes=0-', 0, null],
  ['bytes=2-', 10, { start: 2, end: 9 }],
  ['bytes=2-99', 10, { start: 2, end: 9 }],
  ['bytes=-3', 10, { start: 7, end: 9 }],
  ['bytes=-99', 10, { start: 0, end: 9 }],
  ['bytes=10-', 10, null],
  ['bytes=99999999999999999999-', 10, null],
  ['bytes=-0', 10, null],
  ['bytes=-1', 0, null],
  ['bytes=4-2', 10, undefined],
  ['bytes=-', 10, undefined],
  ['bytes=0-1,3-4', 10, undefined],
  ['lines=0-1', 10, undefined],
  [undefined, 10, undefined],
])('%s of %i bytes is %o', (header, size, expected) => {
  expect(rangeOf(header, size)).toEqual(expected)
})
