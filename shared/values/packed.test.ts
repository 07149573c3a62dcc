import { expect, test } from 'vitest'
import { pack, unpack } from './packed.ts'

test('pieces of any bytes come back as they were, also from the middle of a buffer', () => {
  const pieces = [Buffer.from([0, 255, 10]), Buffer.alloc(0), Buffer.alloc(70_000, 'x')]
  const packed = Buffer.concat([Buffer.from('before'), pack(pieces), Buffer.from('behind')])
  expect(unpack(packed.subarray(6, -6)).map((piece, n) => piece.equals(pieces[n] ?? Buffer.of(1)))).toEqual([
    true,
    true,
    true,
  ])
  expect(unpack(pack([]))).toEqual([])
})

test.each([1, 3, 5])('what is cut short by %d bytes is refused', (bytes) => {
  expect(() => unpack(pack([Buffer.from('abcd')]).subarray(0, -bytes))).toThrow(RangeError)
})
