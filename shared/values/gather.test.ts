import { expect, test } from 'vitest'
import { gather } from './gather.ts'

test('gives back the pieces in their order, and changes none of them', () => {
  const gathered = gather()
  expect(gathered.bytes()).toEqual(Buffer.alloc(0))
  const pieces = ['a', 'bcd', '', 'e'.repeat(100), 'f'].map((text) => Buffer.from(text))
  for (const piece of pieces) gathered.add(piece)
  expect(gathered.length).toBe(105)
  expect(String(gathered.bytes())).toBe(`abcd${'e'.repeat(100)}f`)
  expect(pieces.map(String)).toEqual(['a', 'bcd', '', 'e'.repeat(100), 'f'])
})
