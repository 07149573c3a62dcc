import { expect, test } from 'vitest'
import { isPassing, jsonOf, refusalIn } from './upstream-exchange.ts'

test('what the platform writes is read as Postgres can hold it; what is no JSON is nothing', () => {
  expect(jsonOf(String.raw`{"a":["x\u0000y","\ud800"],"b":"\u00e9"}`)).toEqual({ a: ['xy', '\uFFFD'], b: 'é' })
  expect(jsonOf('{"a":1}')).toEqual({ a: 1 })
  expect(jsonOf('<html>')).toBeUndefined()
})

test('a refusal of the platform says what is nearest to the fault, and no more than can be kept of it', () => {
  const error = { code: 100, message: 'Invalid parameter' }
  const refusalOf = (more: object) => refusalIn({ error: { ...error, ...more } })
  expect(refusalOf({})).toMatchObject({ code: 100, details: 'Invalid parameter', mayPass: false })
  expect(refusalOf({ error_data: { details: 'No such number' } })).toMatchObject({ details: 'No such number' })
  expect(refusalOf({ error_data: { details: '' } })).toMatchObject({ details: 'Invalid parameter' })
  expect(refusalOf({ error_data: 'odd', error_subcode: 'odd' })).toMatchObject({
    subcode: undefined,
    details: error.message,
  })
  expect(refusalOf({ is_transient: true })).toMatchObject({ mayPass: true })
  expect(refusalOf({ message: 'Invalid appsecret_proof provided in the API argument' })).toMatchObject({
    mayPass: true,
  })
  expect(refusalOf({ code: 10, message: 'appsecret_proof' })).toMatchObject({ mayPass: false })
  const half = `${'x'.repeat(999)}😀`
  expect(refusalOf({ message: half })?.message).toBe(`${'x'.repeat(999)}\uFFFD`)
  for (const other of [undefined, {}, { error: { message: 'No code' } }, { error: 'no' }])
    expect(refusalIn(other)).toBeUndefined()
})

test.each([
  ['a throttled call', 400, { code: 80007 }, true],
  ['a platform that is down', 500, { code: 2 }, true],
  ['an unknown code with a 500', 500, { code: 987_654 }, true],
  ['an unknown code with a 400', 400, { code: 987_654 }, false],
  ['a number that is not registered, with a 500', 500, { code: 133000 }, false],
  ['a token that is taken no more, with a 500', 500, { code: 190 }, false],
  ['a permission that is missing, with a 500', 500, { code: 299 }, false],
  ['an object that is not there, with a 500', 500, { code: 100, subcode: 33 }, false],
  ['another fault of a parameter, with a 500', 500, { code: 100 }, true],
  ['what the platform calls transient, with a 400', 400, { code: 100, mayPass: true }, true],
  ['a token that is taken no more, whatever the platform calls it', 400, { code: 190, mayPass: true }, false],
] as const)('%s may be otherwise in a moment, or not', (_what, status, refusal, passes) => {
  expect(isPassing(status, { subcode: undefined, mayPass: false, ...refusal })).toBe(passes)
})
