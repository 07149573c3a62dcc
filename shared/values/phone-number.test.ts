import { expect, test } from 'vitest'
import { displayPhoneNumber, otherWritingOf, phoneNumberOf, toE164 } from './phone-number.ts'

test.each([
  ['+15550123456'],
  ['15550123456'],
  [' 15550123456'],
  ['+1 555 012-3456'],
  ['+1 (555) 012-3456'],
  ['1(555)0123456'],
])('reads %s', (text) => {
  expect(phoneNumberOf(text, 'phone_number')).toBe('+15550123456')
})

test('a number that is possible is taken, assigned or not', () => {
  expect(phoneNumberOf('+49 30 00000000', 'phone_number')).toBe('+493000000000')
})

test('a mobile number of Mexico is taken with its old 1, as the platform writes it', () => {
  expect(phoneNumberOf('5215512345678', 'to')).toBe('+5215512345678')
  expect(phoneNumberOf('+525512345678', 'to')).toBe('+525512345678')
  expect(toE164('+52 1 55 1234 5678')).toBe('+5215512345678')
  expect(() => phoneNumberOf('+52155123456', 'to')).toThrow(
    expect.objectContaining({ failure: 'invalid_phone_number' }),
  )
})

test.each([['Ana'], ['+'], [''], ['+1555'], ['+1 555 0123456 ext. 7'], ['US.13491208655302741918'], ['1'.repeat(40)]])(
  'refuses %j, and names the field',
  (text) => {
    expect(() => phoneNumberOf(text, 'phone_number')).toThrow(
      expect.objectContaining({ failure: 'invalid_phone_number', param: 'phone_number' }),
    )
  },
)

test('a number is shown as people read it, and one that no plan knows as it is', () => {
  expect(displayPhoneNumber('+15550783881')).toBe('+1 555 078 3881')
  expect(displayPhoneNumber('+999123')).toBe('+999123')
})

test.each([
  ['+5215512345678', '+525512345678'],
  ['+5531987654321', '+553187654321'],
])('%s and %s are two writings of one number', (long, short) => {
  expect([otherWritingOf(long), otherWritingOf(short)]).toEqual([short, long])
})

test.each(['+15550123456', '+553133334444', '+52551234567', '+4915112345678', '+5491112345678'])(
  '%s is written in one way',
  (number) => expect(otherWritingOf(number)).toBeNull(),
)

test.each(['+5215512345678', '+22507123456', '+22997123456'])(
  'takes %s, as its owner is known to the platform by the plan before',
  (number) => {
    expect(phoneNumberOf(number.slice(1), 'to')).toBe(number)
    expect(toE164(number)).toBe(number)
  },
)
