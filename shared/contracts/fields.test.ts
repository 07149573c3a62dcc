import { expect, test } from 'vitest'
import { updateContact } from './contacts.ts'
import { createCustomer, createSetupLink } from './customers.ts'
import { messageSent } from './messaging.ts'
import { createMember } from './platform.ts'

const fields = [updateContact.body.shape.email, createCustomer.body.shape.email, createMember.body.shape.email]
const isTaken = (email: string) => fields.map((field) => field.safeParse(email).success)

test.each([
  'ana+news@example.com',
  "o'neil@mail.example.co",
  'r&d@example.com',
  'bounce=ana#1/2@example.com',
  'ana@example.xn--p1ai',
])('the e-mail address %s is taken of a contact, a customer and a member', (email) => {
  expect(isTaken(email)).toEqual([true, true, true])
})

test.each([
  'nobody',
  '@example.com',
  'ana@',
  'ana@localhost',
  'ana@192.0.2.1',
  'ana..b@example.com',
  'ana @example.com',
  'a@b@example.com',
])('%s is no e-mail address', (email) => {
  expect(isTaken(email)).toEqual([false, false, false])
})

test('an e-mail address has 255 characters at most', () => {
  const domain = '@example.com'
  const name = 'a'.repeat(255 - domain.length)
  expect(isTaken(`${name}${domain}`)).toEqual([true, true, true])
  expect(isTaken(`a${name}${domain}`)).toEqual([false, false, false])
})

test('a redirect URL has a host that can be', () => {
  const isRedirect = (url: string) => createSetupLink.body.safeParse({ success_redirect_url: url }).success
  expect(isRedirect(`https://${'字'.repeat(60)}.example/${'字'.repeat(400)}`)).toBe(true)
  expect(isRedirect(`https://${'字'.repeat(400)}.example/`)).toBe(false)
})

test('where words may be added, one of the next release is taken', () => {
  const { source, media_status: mediaStatus } = messageSent.data.shape.message.shape
  const isTaken = (word: unknown) => [source, mediaStatus].map((field) => field.safeParse(word).success)
  expect([isTaken('api'), isTaken('new'), isTaken(1)]).toEqual([
    [true, true],
    [true, true],
    [false, false],
  ])
})
