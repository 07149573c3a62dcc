import { expect, test } from 'vitest'
import { signatureOf } from './sign.ts'

test('the time of a signature is the whole second in which it was made, and none to come', () => {
  expect([1_000, 1_001, 1_999].map((ms) => signatureOf([], Buffer.from(''), ms))).toEqual(['t=1', 't=1', 't=1'])
})
