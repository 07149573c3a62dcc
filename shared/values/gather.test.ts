import { expect, onTestFinished, test, vi } from 'vitest'
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

test('many small pieces are moved a few times alone', () => {
  const made = vi.spyOn(Buffer, 'allocUnsafe')
  onTestFinished(() => made.mockRestore())
  const gathered = gather()
  for (let n = 0; n < 10_000; n++) gathered.add(Buffer.of(n % 256))
  expect(gathered.bytes()).toHaveLength(10_000)
  expect(made.mock.calls.length).toBeLessThan(20)
})
