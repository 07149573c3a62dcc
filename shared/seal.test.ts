import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { seal, unseal } from './seal.ts'

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

test('an older key opens what it sealed; without it nothing does', () => {
  const keys = ring('k1')
  const sealed = seal(keys, 'secret', 'row')
  const rotated = { current: 'k2', byId: new Map([['k2', randomBytes(32)], ...keys.byId]) }
  expect(unseal(rotated, sealed, 'row')).toBe('secret')
  expect(() => unseal(ring('k2'), sealed, 'row')).toThrow('no key "k1"')
})
