import { type TestService, testService } from '@app/test/service.ts'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { newId } from '../values/ids.ts'
import { watchMailbox } from './mailbox-readings.ts'

let service: TestService
beforeAll(async () => {
  service = await testService('messaging')
})
afterAll(() => service.close())

/** The value of a series, read anew. */
async function value(series: string) {
  const now = performance.now()
  const clock = vi.spyOn(performance, 'now').mockReturnValue(now + (later += 20_000))
  const page = await service.probes.metrics.metrics().finally(() => clock.mockRestore())
  const line = page.split('\n').find((one) => one.startsWith(`${series} `))
  return line === undefined ? undefined : Number(line.split(' ').at(-1))
}
let later = 0

test('the outbox tells how much waits and since when, and nothing of what was published or refused', async () => {
  const { sql } = service
  const row = (published: string | null, refused: string | null, age: number) => sql`
    insert into outbox (id, subject, headers, payload, published_at, refused, created_at)
    values (${newId('evt')}, 'event.messaging.x', '{}', '', ${published}, ${refused}, now() - ${age} * interval '1 s')
  `
  const labels = '{service="messaging"}'
  expect(await value(`svc_outbox_waiting_events${labels}`)).toBe(0)
  expect(await value(`svc_outbox_oldest_seconds${labels}`)).toBe(0)
  await row('2026-01-01', null, 1_000)
  await row(null, 'BAD_SUBJECT', 1_000)
  await row(null, null, 100)
  await row(null, null, 10)
  expect(await value(`svc_outbox_waiting_events${labels}`)).toBe(2)
  expect(await value(`svc_outbox_oldest_seconds${labels}`)).toBeCloseTo(100, -1)
})

test('the server tells how many connections it has, and how many it takes', async () => {
  const [connections, limit] = ['svc_database_server_connections', 'svc_database_server_connections_limit']
  const before = (await value(`${connections}{service="messaging"}`)) ?? 0
  expect(before).toBeGreaterThan(0)
  const [row] = await service.sql<{ most: number }[]>`select current_setting('max_connections')::int as most`
  expect(await value(`${limit}{service="messaging"}`)).toBeLessThan(row?.most ?? 0)
  expect(await value(`${limit}{service="messaging"}`)).toBeGreaterThan(before)
})

test('the server tells how many transactions have begun since one that somebody holds open, also if that only reads', async () => {
  const held = () => value('svc_database_held_transactions{service="messaging"}')
  const { sql } = service
  const reader = await sql.reserve()
  await reader`begin isolation level repeatable read, read only`
  await reader`select from outbox limit 1`
  for (let n = 0; n < 300; n++) await sql`select pg_current_xact_id()`
  const beside = (await held()) ?? 0
  expect(beside).toBeGreaterThan(299)
  await reader`commit`
  reader.release()
  await vi.waitFor(async () => expect(await held()).toBeLessThan(beside), { timeout: 10_000 })
})

test('events that are dead are counted by consumer, those that failed for a while are not', async () => {
  await service.sql`
    insert into dead_events (consumer, event_id, subject, headers, payload, failures, dead, last_error)
    select 'one', n::text, 's', '{}', '', 8, n < 3, '' from generate_series(0, 9) n
  `
  expect(await value('svc_dead_events{consumer="one",service="messaging"}')).toBe(3)
})

test('a mailbox tells what is due and since when; held lanes and later ones are not due', async () => {
  const { sql } = service
  const meters = watchMailbox(service, 'send_lanes', () => ({ items: 3, lanes: 2 }))
  const lane = (grp: string, dueInSeconds: number | null, held = '-infinity') => sql`
    insert into send_lanes (id, grp, due_at, held_until)
    values (${newId('cnv')}, ${grp}, now() + ${dueInSeconds} * interval '1 s', ${held}::text::timestamptz)
  `
  const labels = '{lanes="send_lanes",service="messaging"}'
  // More groups than any look goes through, and before all others by their names.
  await sql`
    insert into send_lanes (id, grp, due_at) select 'cnv_' || n, '0' || n, now() + interval '1 hour' from generate_series(1, 1500) n
  `
  await lane('a', 600)
  await lane('a', -900, 'infinity')
  await lane('b', null)
  await lane('c', -900, 'infinity')
  expect(await value(`svc_mailbox_oldest_due_seconds${labels}`)).toBe(0)
  await lane('c', -50)
  await lane('d', -200)
  expect(await value(`svc_mailbox_waiting_lanes${labels}`)).toBe(1_505)
  expect(await value(`svc_mailbox_oldest_due_seconds${labels}`)).toBeCloseTo(200, -1)
  expect(await value(`svc_mailbox_busy_items${labels}`)).toBe(3)
  expect(await value(`svc_mailbox_rescued_lanes_total${labels}`)).toBe(0)
  meters.rescued(2)
  expect(await value(`svc_mailbox_rescued_lanes_total${labels}`)).toBe(2)
})

test('no count scans a table: each of these is read by an index or ends after 10,000 rows', async () => {
  const plans = await service.sql.begin(async (tx) => {
    await tx`set local enable_seqscan = off`
    return Promise.all(
      [
        tx`explain select created_at from outbox where published_at is null and refused is null order by seq limit 1`,
        tx`explain select from sends where parked_until is not null limit 10000`,
        tx`explain select consumer, count(*) from dead_events where dead group by 1`,
      ].map(async (rows) => JSON.stringify(await rows)),
    )
  })
  for (const plan of plans) expect(plan).not.toContain('Seq Scan')
  expect(plans.join()).toMatch(/outbox_.*sends_parked.*dead_events_dead/)
})
