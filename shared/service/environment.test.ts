import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { seal, unseal } from '../secrets/seal.ts'
import { keyRing, publicUrl, sealKeyRing } from './environment.ts'

const entry = (id: string) => `${id}:${randomBytes(32).toString('base64')}`

test.each(['k1', '2026-01', '2026.01', 'k_1', 'K', 'k1.'])(
  'what a key with the id %s seals opens, or it is no key',
  (id) => {
    const keys = sealKeyRing.safeParse(`${entry(id)}, ${entry('k0')}`)
    expect(keys.success).toBe(!id.includes('.'))
    if (keys.success) expect(unseal(keys.data, seal(keys.data, 'secret', 'row'), 'row')).toBe('secret')
  },
)

test('an older key of the ring has no dot either', () => {
  const { error } = sealKeyRing.safeParse(`${entry('k2')},${entry('k.1')}`)
  expect(error?.issues[0]?.message).toBe('must have ids without a dot, such as k1 or 2026-01')
})

test('a new key that bears the id of the one before it is no key', () => {
  const older = entry('k1')
  const { error } = keyRing.safeParse(`${older},${entry('k1')}`)
  expect(error?.issues[0]?.message).toBe('must have a different id for each key')
  expect(keyRing.safeParse(`${older},${entry('k2')}`).success).toBe(true)
})

test.each(['', 'k1', 'k1:', `:${entry('').slice(1)}`, `k1:${randomBytes(16).toString('base64')}`, `${entry('k1')},`])(
  'what is no ring of keys is refused (%#)',
  (text) => {
    const message = 'must be id:base64 pairs, separated by commas, with 32 bytes in each key'
    expect(keyRing.safeParse(text).error?.issues[0]?.message).toBe(message)
  },
)

test.each([
  ['https://chat.example', 'https://chat.example'],
  ['https://chat.example/', 'https://chat.example'],
  ['https://Chat.example:8443/api/chat/', 'https://chat.example:8443/api/chat'],
])('%s is where the world reaches the gateway, without a slash at its end', (text, url) => {
  expect(publicUrl.parse(text)).toBe(url)
})
