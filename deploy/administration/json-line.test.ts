import { expect, test } from 'vitest'
import { jsonLine } from './json-line.ts'

test('is the same JSON, and nothing in it moves the cursor or turns the text of a terminal', () => {
  const answer = {
    details: 'refused \u009b2J\u0085\u007f',
    url: 'https://hooks.example.com/\u001b[2J\u202e\u2066\u2069\u200f\u061c\u2028',
    name: 'Zoë 😀 \\u009b',
  }
  const line = jsonLine(answer)
  expect(JSON.parse(line)).toEqual(answer)
  expect(line).not.toMatch(/[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}]/u)
  expect(line).toContain('Zoë 😀')
})
