import { expect, test } from 'vitest'
import { parseJson } from './json.ts'

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
