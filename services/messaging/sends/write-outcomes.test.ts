import { openDatabase, type Sql } from '@app/shared/database.ts'
import { createTestDatabase, type TestDatabase } from '@app/test/database.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { writeOutcomes } from './write-outcomes.ts'

let database: TestDatabase
let sql: Sql
beforeAll(async () => {
  database = await createTestDatabase('messaging')
  // One connection, whose statements can be asked for.
  sql = openDatabase(database.url, 'messaging', { max: 1 })
})
afterAll(async () => {
  await sql.end()
  await database.drop()
})

test('what comes next in a lane is looked up by the lane, although few sends are open', async () => {
  await sql`vacuum (analyze) sends`
  await writeOutcomes(sql, [], { at: new Date(), told: [], lanes: [] })
  const [kept] = await sql<{ name: string }[]>`
    select name from pg_prepared_statements where strpos(statement, 'given_back') > 0 and strpos(statement, 'pg_prepared') = 0
  `
  const lines = await sql.unsafe(`explain execute "${kept?.name}" ('[]', '[]', '[]', '[]', '[]')`)
  const plan = lines.map((line) => String(line['QUERY PLAN'])).join('\n')
  expect(plan).toMatch(/using sends_head on sends .*\n *Index Cond: \(lane = lane\.id\)/)
  expect(plan).not.toContain('Bitmap Index Scan on sends_head')
})
