import { expect, test } from 'vitest'
import { z } from 'zod'
import { inQueryWords } from './fault-words.ts'
import { faultOf } from './faults.ts'
import { pageQuery } from './page.ts'

const query = z.object({ ...pageQuery, status: z.string().optional() })

test.each([
  [{ limit: '0' }, 'invalid_limit', 'limit'],
  [{ limit: ['1', '2'] }, 'invalid_limit', 'limit'],
  [{ limit: '0101' }, 'invalid_limit', 'limit'],
  [{ limit: '1e1' }, 'invalid_limit', 'limit'],
  [{ cursor: ['a', 'b'] }, 'invalid_cursor', 'cursor'],
  [{ cursor: '\0' }, 'invalid_cursor', 'cursor'],
  [{ status: ['a', 'b'] }, 'invalid_field_value', 'status'],
])('a query of %j is %s', (given, failure, param) => {
  const { error } = query.safeParse(given)
  expect(error && faultOf(error, 'query')).toMatchObject({ failure, param })
})

test('a limit may have zeros before it', () => expect(query.safeParse({ limit: '0025' }).success).toBe(true))

test('a field of a body may be called as those of pages are', () => {
  const { error } = z.object({ limit: z.string() }).safeParse({ limit: 7 })
  expect(error && faultOf(error, 'body')).toMatchObject({ failure: 'invalid_field_value', param: 'limit' })
})

test.each(['status', 'limit', 'cursor'])('of %s that stands in a query twice it says so', (name) => {
  const { error } = query.safeParse({ [name]: ['1', '2'] }, inQueryWords)
  expect(error && faultOf(error, 'query').message).toBe(`${name}: must be given once.`)
})
