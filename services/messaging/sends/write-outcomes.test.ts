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

test('open sends are looked up by their number or their lane, although few are open when the plan is made', async () => {
  await database.admin`vacuum (analyze) messaging.sends, messaging.messages, messaging.send_lanes`
  await writeOutcomes(sql, [], { at: new Date(), told: [], lanes: [] })
  const [kept] = await sql<{ name: string }[]>`
    select name from pg_prepared_statements where strpos(statement, 'given_back') > 0 and strpos(statement, 'pg_prepared') = 0
  `
  const lines = await sql.unsafe(`explain execute "${kept?.name}" ('[]', '[]', '[]', '[]', '[]')`)
  const plan = lines.map((line) => String(line['QUERY PLAN'])).join('\n')
  const scans = [...plan.matchAll(/using (\w+) on sends\b.*\n *Index Cond: \(*(\w+) =/g)]
  expect(scans.map(([, index, column]) => `${index} by ${column}`)).toEqual([
    'sends_pkey by seq',
    'sends_pkey by seq',
    'sends_head by lane',
  ])
  expect(plan.match(/Scan.* on sends\b/g)).toHaveLength(scans.length)
})
