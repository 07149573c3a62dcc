import { expect, test } from 'vitest'
import { asciiJson } from './ascii-json.ts'

test('escapes everything beyond ASCII, and means the same', () => {
  const value = { text: 'Zoë 😀 \u2028 "x" \\', schlüssel: [1, null] }
  const json = asciiJson(value)
  expect(json).toMatch(/^[\u0020-\u007e]+$/)
  expect(json).toContain(String.raw`Zo\u00eb \ud83d\ude00`)
  expect(JSON.parse(json)).toEqual(value)
})
