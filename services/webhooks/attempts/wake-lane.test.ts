import { openDatabase, type Sql, type TransactionSql } from '@app/shared/database/database.ts'
import { createTestDatabase } from '@app/test/database.ts'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { arriving, endLane, renewLane, retakeLane, wakeWithin } from './wake-lane.ts'

let database: Awaited<ReturnType<typeof createTestDatabase>>
let sql: Sql
const lane = 'wbs_1'

beforeAll(async () => {
  database = await createTestDatabase('webhooks')
  sql = openDatabase(database.url, 'webhooks')
  await sql`
    insert into subscriptions (id, organization_id, url, events, created_at, updated_at)
    values (${lane}, 'org_1', 'https://example.com/', '{message.sent}', now(), now())
  `
})
afterAll(async () => {
  await sql.end()
  await database.drop()
})
beforeEach(() => sql`truncate lanes`)

const arrive = (tx: TransactionSql, id: string) => tx`
  insert into lanes as l (id, grp, due_at, arrivals) values (${id}, 'org_1', now(), 1) ${arriving(tx)}
`

/** What becomes of a lane that is due, and paced, so many seconds from now. */
async function after(wake: (tx: TransactionSql, id: string) => Promise<unknown>, dueInS: number, pacedS: number) {
  await sql`
    insert into lanes (id, grp, arrivals, due_at, paced_until)
    values (${lane}, 'org_1', 4, now() + ${dueInS} * interval '1 s', now() + ${pacedS} * interval '1 s')
  `
  await sql.begin((tx) => wake(tx, lane))
  const [row] = await sql<{ arrivals: string; dueInS: number; isPaced: boolean }[]>`
    select arrivals, round(extract(epoch from due_at - now()), -1)::int as due_in_s, paced_until > now() as is_paced from lanes
  `
  return row
}

describe.each([
  ['an arrival', arrive],
  ['a wake as an arrival', (tx: TransactionSql, id: string) => wakeWithin(tx, [id])],
])('%s', (_, wake) => {
  test('makes a lane due, but not before what its endpoint asked for', async () => {
    expect(await after(wake, 900, 600)).toEqual({ arrivals: '5', dueInS: 600, isPaced: true })
  })

  test('leaves one that is due already its place before those that came due after it', async () => {
    expect(await after(wake, -300, -600)).toEqual({ arrivals: '5', dueInS: -300, isPaced: false })
  })
})

test.each([
  ['one that is taken from its holder', retakeLane],
  ['one that is over', (tx: TransactionSql, id: string) => endLane(tx, id, 'org_1')],
  ['one that begins anew', renewLane],
])('whatever a lane waited for, %s is due, and who gives it back sees that', async (_, wake) => {
  expect(await after(wake, 900, 600)).toEqual({ arrivals: '5', dueInS: 0, isPaced: false })
})

test.each([
  ['an arrival', arrive],
  ['a wake as an arrival', (tx: TransactionSql, id: string) => wakeWithin(tx, [id])],
  ['one that is taken from its holder', retakeLane],
  ['one that is over', (tx: TransactionSql, id: string) => endLane(tx, id, 'org_1')],
  ['one that begins anew', renewLane],
])('%s takes no other lane from its holder, nor wakes it', async (_, wake) => {
  await sql`
    insert into lanes (id, grp, failures, due_at, held_until, paced_until)
    select id, 'org_1', 3, now() + interval '1 hour', now() + interval '1 hour', now() + interval '1 hour'
    from unnest(array[${lane}, 'wbs_2']) id
  `
  const other = () => sql`select * from lanes where id = 'wbs_2'`
  const before = await other()
  await sql.begin((tx) => wake(tx, lane))
  expect(await other()).toEqual([...before])
})
