import { expect, test } from 'vitest'
import { retryWhileAway } from './retry-while-away.ts'

/** A statement that fails with these codes, one after the other, and then answers how often it was begun. */
function failing(...codes: string[]) {
  const statement = () => {
    const code = codes[statement.begun++]
    return code === undefined
      ? Promise.resolve(statement.begun)
      : Promise.reject(Object.assign(new Error(code), { code }))
  }
  statement.begun = 0
  return statement
}

const inOneMinute = () => performance.now() + 60_000

test('a statement is repeated while the database is away', async () => {
  expect(await retryWhileAway(failing('ECONNREFUSED', '57P01'), inOneMinute())).toBe(3)
})

test.each([
  ['at another failure', '23505', inOneMinute],
  ['when the pool was closed, since nothing is answered any more', 'CONNECTION_ENDED', inOneMinute],
  ['when none may begin any more', 'ECONNREFUSED', () => performance.now() + 100],
])('it is not repeated %s', async (_, code, deadline) => {
  const statement = failing(code)
  await expect(retryWhileAway(statement, deadline())).rejects.toThrow(code)
  expect(statement.begun).toBe(1)
})
