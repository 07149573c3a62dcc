import { createSecretKey } from 'node:crypto'
import Stripe from 'stripe'
import { expect, test } from 'vitest'
import { signatureOf } from '../services/webhooks/attempts/sign.ts'

const body = Buffer.from('{"id":"evt_1","text":"é😀"}')
const [newer, older, deleted] = ['whsec_newer', 'whsec_older', 'whsec_deleted'] as const
const keysOf = (...secrets: string[]) => secrets.map((secret) => createSecretKey(secret, 'utf8'))

/** Code that is not ours, and that reads this very header format; five minutes of tolerance. */
const { webhooks } = new Stripe('sk_test_unused')
const isAccepted = (header: string, secret: string, raw = body) => {
  try {
    webhooks.constructEvent(raw, header, secret)
    return true
  } catch {
    return false
  }
}

test('during a rotation both secrets verify, and after it the deleted one does not', () => {
  const during = signatureOf(keysOf(newer, older), body, Date.now())
  expect([newer, older, deleted].map((secret) => isAccepted(during, secret))).toEqual([true, true, false])
  const after = signatureOf(keysOf(newer), body, Date.now())
  expect([newer, older].map((secret) => isAccepted(after, secret))).toEqual([true, false])
})

test('neither another body nor an old signature is accepted', () => {
  const header = signatureOf(keysOf(newer), body, Date.now())
  expect(isAccepted(header, newer, Buffer.from(`${body.toString()} `))).toBe(false)
  expect(isAccepted(signatureOf(keysOf(newer), body, Date.now() - 6 * 60_000), newer)).toBe(false)
})
