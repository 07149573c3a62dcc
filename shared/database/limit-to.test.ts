import { createTestDatabase, type TestDatabase } from '@app/test/database.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openDatabase, type Sql } from './database.ts'
import { limitTo } from './limit-to.ts'

let database: TestDatabase
/** One connection, whose statements can be asked for. */
let sql: Sql
beforeAll(async () => {
  database = await createTestDatabase('messaging')
  sql = openDatabase(database.url, 'messaging', { max: 1 })
  await sql`create table listed (owner text, n int, primary key (owner, n))`
  await sql`insert into listed select 'owner ' || n % 10, n from generate_series(1, 20000) n`
  await sql`analyze listed`
})
afterAll(async () => {
  await sql.end()
  await database.drop()
})

test('the plan of a list is kept, since its limit is no parameter', async () => {
  for (const owner of Array.from({ length: 10 }, (_, n) => `owner ${n}`)) {
    await sql`select n from listed where owner = ${owner} order by n desc ${limitTo(sql, 26)}`
    await sql`select n as given from listed where owner = ${owner} order by n desc limit ${26}`
  }
  const statements = await sql`
    select statement ~ 'as given' as given, generic_plans::int, custom_plans::int from pg_prepared_statements
    where statement ~ 'from listed where' and statement !~ 'pg_prepared' order by 1
  `
  expect(statements).toEqual([
    { given: false, genericPlans: 5, customPlans: 5 },
    { given: true, genericPlans: 0, customPlans: 10 },
  ])
})
