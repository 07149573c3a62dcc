import { expect, test } from 'vitest'
import { fingerprintOf, parseJson } from './json.ts'

const parsed = (text: string) => parseJson(Buffer.from(text))

test.each([
  ['{"a":[1,{"b":1e400}]}', 'a[1].b'],
  ['{"a":-1E+999}', 'a'],
  [`{"a":${'9'.repeat(400)}}`, 'a'],
])('a number that would be stored as null is refused with its place: %s', (text, param) => {
  expect(() => parsed(text)).toThrow(expect.objectContaining({ failure: 'invalid_field_value', param }))
})

test('a zero has no sign, so that what is stored is what was sent', () => {
  expect(parsed('{"a":-0,"b":[-0.0,-0e5,-0.5],"c":1e-400}')).toStrictEqual({ a: 0, b: [0, 0, -0.5], c: 0 })
})

test('numbers in a customer’s text are no fault of the caller', () => {
  expect(parseJson(Buffer.from('{"a":1e400}'), { brokenText: 'drop' })).toEqual({ a: Infinity })
})

const nested = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`

test('32 levels are read, however many signs of levels stand in texts, and no more', () => {
  expect(parsed(`[${JSON.stringify('"\\\\[{'.repeat(40))},${nested(31)}]`)).toHaveLength(2)
  expect(() => parsed(nested(33))).toThrow(expect.objectContaining({ failure: 'invalid_field_value' }))
})

test.each([
  ['a text', String.raw`{"a":[1,{"b":"\u0000"}]}`, 'a[1].b'],
  ['a text', String.raw`{"a":"\ud83d"}`, 'a'],
  ['a key', String.raw`{"a":{"b\u0000":1}}`, 'a'],
  ['a key', String.raw`{"a":[{"\ud83d":1}]}`, 'a[0]'],
])('%s that Postgres cannot hold is refused with its place: %s', (_, text, param) => {
  expect(() => parsed(text)).toThrow(expect.objectContaining({ failure: 'invalid_field_value', param }))
})

test('of what a customer wrote, texts and keys that Postgres cannot hold are mended', () => {
  const text = String.raw`{"a\u0000":["\ud83d!",{"\ude00":"b\u0000c"}]}`
  expect(parseJson(Buffer.from(text), { brokenText: 'drop' })).toEqual({ a: ['\ufffd!', { '\ufffd': 'bc' }] })
})

test.each([
  ['{"a":1,\n "b":2\n "c":3}', "Expected ',' or '}' after property value in JSON (line 3 column 2)"],
  ['{"a":1,}', 'Expected double-quoted property name in JSON (line 1 column 8)'],
  ['{} x', 'Unexpected non-whitespace character after JSON (line 1 column 4)'],
  ['{"a":', 'Unexpected end of JSON input'],
  ['{"name":None}', `Unexpected token 'N', "{"name":None}"`],
])('of what is no JSON it says where: %s', (text, where) => {
  const message = `The request body is not valid JSON: ${where}.`
  expect(() => parsed(text)).toThrow(expect.objectContaining({ failure: 'invalid_field_value', message }))
})

test('what stands around a fault has no half of a character', () => {
  expect(() => parsed(`{"a":"${'😀'.repeat(9)}", "b":x}`)).toThrow(
    expect.objectContaining({ message: expect.toSatisfy((message: string) => message.isWellFormed()) }),
  )
})

test('a request is the same one in whatever order its keys come, and another one with anything else', () => {
  const first = fingerprintOf('POST /v1/labels?a=1', { a: 1, b: [{ c: 2, d: null }, 3] })
  expect(fingerprintOf('POST /v1/labels?a=1', { b: [{ d: null, c: 2 }, 3], a: 1 })).toBe(first)
  const others = [
    fingerprintOf('POST /v1/labels?a=2', { a: 1, b: [{ c: 2, d: null }, 3] }),
    fingerprintOf('POST /v1/labels?a=1', { a: 1, b: [3, { c: 2, d: null }] }),
    fingerprintOf('POST /v1/labels?a=1', { a: 1, b: [{ c: 2 }, 3] }),
    fingerprintOf('POST /v1/labels?a=1', undefined),
  ]
  expect(new Set([first, ...others]).size).toBe(5)
})
