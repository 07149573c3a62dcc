import { createTestDatabase, type TestDatabase } from '@app/test/database.ts'
import { headers, type JsMsg } from 'nats'
import { pino } from 'pino'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Sql } from '../database/database.ts'
import { findHandled } from './handled-ranges.ts'
import { createHandledNotes, multirangeOf } from './note-handled.ts'
import { consumers } from './provision.ts'
import { outboxHeader } from './stream.ts'
import { forgetHandled, mergeHandled } from './sweep-handled.ts'

const consumer = consumers.webhooksFanOut.name
const log = pino({ level: 'silent' })

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase('webhooks')
})
afterAll(() => database.drop())
beforeEach(() => database.sql`truncate handled_ranges`)

/** An event of messaging, as far as it is looked at. */
function handled(seq: string | null): JsMsg {
  const carrier = headers()
  if (seq !== null) carrier.set(outboxHeader, seq)
  return { subject: 'event.messaging.message-sent', headers: carrier } as JsMsg
}

const noted = (first = 1, last = 1_000) =>
  findHandled(database.sql, { consumer, source: 'messaging', first, last }).then(({ seqs }) => seqs)

const insert = (seqs: string, first: number, last: number, ago: string, source = 'messaging') => database.sql`
  insert into handled_ranges (consumer, source, seqs, first, last, at)
  values (${consumer}, ${source}, ${seqs}, ${first}, ${last}, now() - ${ago}::interval)
`

test('numbers become ranges, as Postgres reads them', async () => {
  expect([multirangeOf([]), multirangeOf([7]), multirangeOf([1, 2, 3, 3, 5, 9, 10])]).toEqual([
    '{}',
    '{[7,7]}',
    '{[1,3],[5,5],[9,10]}',
  ])
  const numbers = [1, 2, 3, 5, 9, 10, 60]
  const [row] = await database.sql<{ there: number[] }[]>`
    select array_agg(n order by n)::int[] as there from generate_series(1, 60) n
    where n::bigint <@ ${multirangeOf(numbers)}::int8multirange
  `
  expect(row?.there).toEqual(numbers)
})

test('what was handled is noted, also by who stops at once; what does not say where it comes from is not', async () => {
  const notes = createHandledNotes({ sql: database.sql, log }, consumer)
  notes.add([handled('2'), handled('1'), handled('4'), handled(null), handled('no number')])
  await notes.stop()
  expect(await noted()).toBe('{[1,3),[4,5)}')
  expect(await noted(2, 3)).toBe('{[2,3)}')
  expect(await noted(10, 20)).toBe('{}')
})

test('of a consumer whom nobody asks nothing is noted', async () => {
  const notes = createHandledNotes({ sql: database.sql, log }, consumers.directorySentMessages.name)
  notes.add([handled('1')])
  await notes.stop()
  expect(await database.sql`select from handled_ranges`).toEqual([])
})

test('what cannot be noted is noted later, though nothing more is handled', async () => {
  let isAway = true
  const sql = new Proxy(database.sql, {
    apply: (target, self, args) =>
      isAway ? Promise.reject(new Error('away')) : Reflect.apply(target as (...all: unknown[]) => unknown, self, args),
  }) as Sql
  const notes = createHandledNotes({ sql, log }, consumer)
  notes.add([handled('1')])
  await new Promise((resolve) => setTimeout(resolve, 1_300))
  expect(await noted()).toBe('{}')
  isAway = false
  await expect.poll(() => noted(), { timeout: 5_000 }).toBe('{[1,2)}')
  await notes.stop()
})

test('notes become one in ten minutes, but for the newest; what is found stays the same', async () => {
  const [{ ago } = { ago: '' }] = await database.sql<{ ago: string }[]>`
    select (now() - date_bin('10 minutes', now(), 'epoch') + interval '5 minutes')::text as ago
  `
  for (let n = 1; n <= 250; n++) await insert(`{[${n},${n}]}`, n, n, ago)
  await insert('{[270,270]}', 270, 270, '1 hour')
  await insert('{[280,280]}', 280, 280, '70 minutes')
  await insert('{[300,300]}', 300, 300, ago, 'directory')
  await insert('{[251,260]}', 251, 260, '1 second')
  const before = await noted()
  while ((await mergeHandled(database.sql)) > 0);
  expect(await noted()).toBe(before)
  const rows = await database.sql`
    select source, first, last, at < now() - interval '1 minute' as is_old from handled_ranges order by first
  `
  expect(rows).toEqual([
    { source: 'messaging', first: '1', last: '250', isOld: true },
    { source: 'messaging', first: '251', last: '260', isOld: false },
    { source: 'messaging', first: '270', last: '270', isOld: true },
    { source: 'messaging', first: '280', last: '280', isOld: true },
    { source: 'directory', first: '300', last: '300', isOld: true },
  ])
})

test('however many notes there are, one statement makes fewer of some of them in its time', async () => {
  await database.admin`
    insert into webhooks.handled_ranges (consumer, source, seqs, first, last, at)
    select ${consumer}, 's' || n % 60, int8multirange(int8range(n, n, '[]')), n, n, now() - interval '3 days' + n * interval '0.6 s'
    from generate_series(1, 400000) n
  `
  expect(await mergeHandled(database.sql)).toBeGreaterThan(1)
})

test('the newest says nothing of the last seconds, in which notes may still come', async () => {
  const newest = () => findHandled(database.sql, { consumer, source: 'messaging', first: 1, last: 1 })
  await insert('{[5,9]}', 5, 9, '1 second')
  expect(await newest()).toEqual({ seqs: '{}', newest: null })
  await insert('{[3,4]}', 3, 4, '11 seconds')
  expect(await newest()).toEqual({ seqs: '{}', newest: 4 })
})

test('what another consumer has handled, or this one of another service, says nothing', async () => {
  await insert('{[1,2]}', 1, 2, '1 minute', 'platform')
  await database.sql`
    insert into handled_ranges (consumer, source, seqs, first, last, at)
    values (${consumers.webhooksInOrder.name}, 'messaging', '{[3,4]}', 3, 4, now() - interval '1 minute')
  `
  const found = await findHandled(database.sql, { consumer, source: 'messaging', first: 1, last: 9 })
  expect(found).toEqual({ seqs: '{}', newest: null })
})

test('of a note that reaches to the first or the last that is asked for, that one is found', async () => {
  await insert('{[1,3]}', 1, 3, '1 minute')
  await insert('{[7,9]}', 7, 9, '1 minute')
  expect(await noted(3, 7)).toBe('{[3,4),[7,8)}')
})

test('notes are kept longer than the events that they are about', async () => {
  await insert('{[1,1]}', 1, 1, '5 days')
  await insert('{[2,2]}', 2, 2, '145 hours')
  expect(await forgetHandled(database.sql)).toBe(1)
  expect(await noted()).toBe('{[1,2)}')
})
