import { expect, test } from 'vitest'
import { toE164 } from '@app/shared/values/phone-number.ts'

test.each([
  ['+1 555-078-3881', '+15550783881'],
  ['+1 (555) 078-3881', '+15550783881'],
  ['15550783881', '+15550783881'],
  ['+49 1512 3456789', '+4915123456789'],
  ['', null],
  ['+1 555', null],
  ['n/a', null],
])('%s is %s', (displayed, expected) => {
  expect(toE164(displayed)).toBe(expected)
})
