import { expect, test } from 'vitest'
import { isSameContent } from './same-content.ts'

const body = { type: 'BODY', text: 'Hello.' }
const buttons = (...list: object[]) => ({ type: 'BUTTONS', buttons: list })

test('order, case of words, samples and the way a number is written make no difference', () => {
  const submitted = [
    { type: 'header', format: 'image', example: { header_handle: ['4::a'] } },
    body,
    buttons({ type: 'phone_number', text: 'Call', phone_number: '+1 555 000 1111' }),
  ]
  const theirs = [
    buttons({ type: 'PHONE_NUMBER', text: 'Call', phone_number: '+15550001111' }),
    body,
    { type: 'HEADER', format: 'IMAGE', example: { header_handle: ['https://x.example/signed'] } },
  ]
  expect(isSameContent(submitted, theirs)).toBe(true)
})

test('the texts that the platform gives a template for codes are its own', () => {
  const submitted = [
    { type: 'BODY', add_security_recommendation: true },
    buttons({ type: 'OTP', otp_type: 'COPY_CODE' }),
  ]
  const theirs = [
    { type: 'BODY', text: '*{{1}}* is your code.', add_security_recommendation: true },
    buttons({ type: 'URL', text: 'Copy code', url: 'https://x.example/?code=otp{{1}}' }),
  ]
  expect(isSameContent(submitted, theirs)).toBe(true)
})

test.each([
  ['another text', [{ ...body, text: 'Hi.' }]],
  ['another component more', [body, { type: 'FOOTER', text: 'Bye' }]],
  ['another component in its place', [{ type: 'FOOTER', text: 'Hello.' }]],
])('%s makes it another one', (_what, theirs) => {
  expect(isSameContent([body], theirs)).toBe(false)
})

test.each([
  ['another label', [{ type: 'QUICK_REPLY', text: 'No' }]],
  ['another type', [{ type: 'URL', text: 'Ok' }]],
  ['one more', [{ type: 'QUICK_REPLY', text: 'Ok' }, { type: 'QUICK_REPLY', text: 'No' }]], // prettier-ignore
])('so does, of its buttons, %s', (_what, theirs) => {
  const submitted = buttons({ type: 'QUICK_REPLY', text: 'Ok' })
  expect(isSameContent([body, submitted], [body, buttons(...theirs)])).toBe(false)
})
