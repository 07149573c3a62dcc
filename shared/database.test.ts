import { afterAll, beforeAll, expect, test } from 'vitest'
import { testService, type TestService } from '@app/test/service.ts'

let it: TestService
beforeAll(async () => (it = await testService('messaging')))
afterAll(() => it.close())

test('a query is awaited as a promise is, and is none: its rows would outlive it', async () => {
  const { sql } = it
  expect(sql`select 1`).not.toBeInstanceOf(Promise)
  expect([...(await sql`select ${1}::int as n`)]).toEqual([{ n: 1 }])
  expect(await sql`select 2 as n`.then(([row]) => row)).toEqual({ n: 2 })
  const both = await Promise.all([sql`select 3 as n`, sql.unsafe('select 4 as n')])
  expect(both.map(([row]) => row?.['n'])).toEqual([3, 4])
  const seen: unknown[] = []
  await sql`select n from generate_series(1, 5) n`.cursor(2, (rows) => void seen.push(rows.length))
  expect(seen).toEqual([2, 2, 1])
})

test('a query that fails rejects, is caught, and ends its transaction', async () => {
  const { sql } = it
  await expect(sql`select 1 / 0`).rejects.toThrow('division by zero')
  expect(await sql`select 1 / 0`.catch((err: Error) => err.message)).toContain('division by zero')
  let ended = false
  await expect(sql`select 1 / 0`.finally(() => (ended = true))).rejects.toThrow('division by zero')
  expect(ended).toBe(true)
  await expect(sql.begin((tx) => [tx`select 1`, tx`select 1 / 0`])).rejects.toThrow('division by zero')
})
