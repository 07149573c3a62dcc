import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { renewed, seal, unseal } from './seal.ts'

const ring = (...ids: string[]) => ({ current: ids[0] ?? '', byId: new Map(ids.map((id) => [id, randomBytes(32)])) })

test('what is sealed opens for its row alone, and never looks alike', () => {
  const keys = ring('k1')
  const sealed = seal(keys, 'hunter2 ü', 'account:acc_1')
  expect(unseal(keys, sealed, 'account:acc_1')).toBe('hunter2 ü')
  expect(sealed).not.toContain('hunter2')
  expect(seal(keys, 'hunter2 ü', 'account:acc_1')).not.toBe(sealed)
  expect(() => unseal(keys, sealed, 'account:acc_2')).toThrow()
})

test('a changed character does not open', () => {
  const keys = ring('k1')
  const sealed = seal(keys, 'secret', 'row')
  const middle = sealed.length - 12
  const changed = sealed.slice(0, middle) + (sealed[middle] === 'A' ? 'B' : 'A') + sealed.slice(middle + 1)
  expect(() => unseal(keys, changed, 'row')).toThrow()
})

test('a shortened tag, of which a forger would have to guess less, does not open', () => {
  const keys = ring('k1')
  const [keyId, nonce, tag = ''] = seal(keys, '', 'row').split('.')
  expect(() => unseal(keys, [keyId, nonce, tag.slice(0, 16)].join('.'), 'row')).toThrow()
})

test('an older key opens what it sealed; without it nothing does', () => {
  const keys = ring('k1')
  const sealed = seal(keys, 'secret', 'row')
  const rotated = { current: 'k2', byId: new Map([['k2', randomBytes(32)], ...keys.byId]) }
  expect(unseal(rotated, sealed, 'row')).toBe('secret')
  const refusal = { failure: 'service_unavailable', cause: new Error('no key "k1" in SEAL_KEYS') }
  expect(() => unseal(ring('k2'), sealed, 'row')).toThrow(expect.objectContaining(refusal))
})

test('renewing seals under the current key what an older one sealed, and leaves the rest', () => {
  const old = ring('k1')
  const keys = { current: 'k2', byId: new Map([['k2', randomBytes(32)], ...old.byId]) }
  const again = renewed(keys, seal(old, 'secret', 'row'), 'row')
  expect(again).toMatch(/^k2\./)
  expect(unseal(keys, again, 'row')).toBe('secret')
  expect(renewed(keys, again, 'row')).toBe(again)
  const foreign = seal(ring('k9'), 'secret', 'row')
  expect(renewed(keys, foreign, 'row')).toBe(foreign)
  const moved = seal(old, 'secret', 'another row')
  expect(renewed(keys, moved, 'row')).toBe(moved)
})
