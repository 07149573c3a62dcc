import { expect, test } from 'vitest'
import { hasTag, weakTagOf } from './etag.ts'

const answer = (data: string, requestId: string) => Buffer.from(`{"data":"${data}","request_id":"${requestId}"}`)
const tag = weakTagOf(answer('a', 'req_1'), 'req_1')

test('an answer keeps its tag as long as it says the same, whatever its request id', () => {
  expect(tag).toMatch(/^W\/"[\w-]{27}"$/)
  expect(weakTagOf(answer('a', 'req_22'), 'req_22')).toBe(tag)
  expect(weakTagOf(answer('b', 'req_1'), 'req_1')).not.toBe(tag)
})

test.each([tag, tag.slice(2), `"x", ${tag}`, `W/"x",${tag}`, '*', ` ${tag} `])('%s has it', (header) => {
  expect(hasTag(header, tag)).toBe(true)
})

test.each([undefined, '', '"x"', '"x*"', 'W/"x"', tag.slice(0, -1), tag.slice(3, -1)])('%s does not', (header) => {
  expect(hasTag(header, tag)).toBe(false)
})
