import { createTestDatabase, type TestDatabase } from '@app/test/database.ts'
import { keptPlan, planIn } from '@app/test/kept-plan.ts'
import { untilSomebodyWaits } from '@app/test/lock-waits.ts'
import { refusingManyRows } from '@app/test/refuse-many-rows.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readUpTo } from './send-read-receipt.ts'

let database: TestDatabase
/** A number of which nobody has read anything, beside 300 whose messages are read. */
const unread = { organizationId: 'org_0', phoneNumberId: '0' }
beforeAll(async () => {
  database = await createTestDatabase('messaging')
  await database.sql`
    insert into messages (organization_id, phone_number_id, id, conversation_id, contact_id, direction, type, body, parties,
      status, rank, request_id, created_at)
    select 'org_' || number, number, 'msg_' || lpad(n::text, 5, '0'), 'cnv_' || number || '_' || n / 40, 'ctc_1', 'inbound', 'text',
      '{}', '{}', case number when 0 then 'delivered' else 'read' end, 4, 'req_1', now()
    from generate_series(0, 19999) n, lateral (select case when n < 2000 then 0 else n / 60 end as number) of
  `
  await database.admin.unsafe('vacuum (analyze) messaging.messages')
})
afterAll(() => database.drop())

test('a receipt reads its conversation alone, however much of its number is unread', async () => {
  const session = await database.sql.reserve()
  await session`set plan_cache_mode = force_generic_plan`
  const read = await readUpTo(session, { ...unread, conversationId: 'cnv_0_1', id: 'msg_00049' })
  expect(read).toHaveLength(10)
  const plan = await keptPlan(session, ['update messages'], Array<string>(9).fill("''"))
  session.release()
  expect(plan).toMatch(/Index Scan using messages_conversation on messages.*\n *Index Cond: \(\(conversation_id = /)
})

test('a receipt reads all of very many, though no statement marks more than a thousand', async () => {
  const { sql } = database
  await sql`
    insert into messages (organization_id, phone_number_id, id, conversation_id, contact_id, direction, type, body, parties,
      status, rank, request_id, created_at)
    select 'org_0', '0', 'msg_8' || lpad(n::text, 4, '0'), 'cnv_many', 'ctc_1', 'inbound', 'text', '{}', '{}',
      case n % 100 when 0 then 'read' else 'delivered' end, 4, 'req_1', now()
    from generate_series(1, 3000) n order by n % 7
  `
  await refusingManyRows(sql, ['messages'], async () => {
    const read = await readUpTo(sql, { ...unread, conversationId: 'cnv_many', id: 'msg_82500' })
    expect(read).toHaveLength(2_475)
  })
  const left = await sql`
    select min(id), count(*)::int from messages where conversation_id = 'cnv_many' and status = 'delivered'
  `
  expect(left).toEqual([{ min: 'msg_82501', count: 495 }])
})

/** Else the key of a number is as good as any index: it promises one row, and reads 100,000. */
test('a number is known to be of one organization, and not to have few messages', async () => {
  const session = await database.sql.reserve()
  await session`set plan_cache_mode = force_generic_plan`
  await session.unsafe(
    'prepare of_number (text, text) as select from messages where organization_id = $1 and phone_number_id = $2',
  )
  const plan = planIn(await session.unsafe(`explain execute of_number ('', '')`))
  session.release()
  const [, rows] = /rows=(\d+)/.exec(plan) ?? []
  expect(Number(rows)).toBeGreaterThan(20)
})

test('receipts of a conversation take its messages in one order, however each of them finds these', async () => {
  const { sql } = database
  const ids = Array.from({ length: 8 }, (_, n) => `msg_9000${n}`)
  // They lie in another order than that of their ids.
  await sql`
    insert into messages (organization_id, phone_number_id, id, conversation_id, contact_id, direction, type, body, parties,
      status, rank, request_id, created_at)
    select 'org_0', '0', id, 'cnv_reversed', 'ctc_1', 'inbound', 'text', '{}', '{}', 'delivered', 4, 'req_1', now()
    from unnest(${ids}::text[]) id order by id desc
  `
  const { reading, free } = await sql.begin(async (tx) => {
    await tx`select from messages where id = 'msg_90000' and phone_number_id = '0' and organization_id = 'org_0' for update`
    const read = sql.begin(async (other) => {
      await other`set local enable_indexscan = off`
      return readUpTo(other, { ...unread, conversationId: 'cnv_reversed', id: 'msg_90007' })
    })
    await untilSomebodyWaits(sql)
    const others = await sql`select id from messages where conversation_id = 'cnv_reversed' for update skip locked`
    return { reading: read, free: others.length }
  })
  expect(await reading).toHaveLength(8)
  expect(free).toBe(7)
})
