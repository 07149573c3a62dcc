import type { Sql } from 'postgres'
import { expect, test } from 'vitest'
import { composePromises } from './query-promise.ts'

/** As the driver's. */
class Query extends Promise<string> {
  static override get [Symbol.species]() {
    return Promise
  }
}

test('a query is awaited that was made before its kind has a promise in place of being one, and one that was made after', async () => {
  const answers: ((answer: string) => void)[] = []
  const sql = (() => new Query((resolve) => void answers.push(resolve))) as unknown as Sql
  const before = sql``
  composePromises(sql)
  const after = sql``
  for (const answer of answers) answer('answered')
  expect(before).toBeInstanceOf(Query)
  for (const query of [before, after]) {
    expect(await query).toBe('answered')
    expect(await query.catch(() => 'failed')).toBe('answered')
    expect(await query.finally(() => {})).toBe('answered')
  }
  expect(after).not.toBeInstanceOf(Promise)
})
