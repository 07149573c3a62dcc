import { systemCaller } from '@app/shared/bus/ask.ts'
import { ownSession } from '@app/shared/database/own-session.ts'
import { newId } from '@app/shared/values/ids.ts'
import { until } from '@app/test/until.ts'
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { explainEvents } from '../explain/explain-deliveries.ts'
import { type TestWebhooks, testWebhooks } from '../testing/app.ts'
import { type Receiver, startReceiver } from '../testing/receiver.ts'
import { startBacklog } from './backlog.ts'
import { startFanOut } from './fan-out.ts'
import type { EventRow } from './record-events.ts'
import { createRecorder } from './recorder.ts'

let webhooks: TestWebhooks
let receiver: Receiver

/** Of an organization whose every event goes to many: ten events are its share. */
const subscriptions = 400
const big = newId('org')

beforeAll(async () => {
  webhooks = await testWebhooks()
})
afterAll(() => webhooks.close())

beforeEach(async () => {
  await webhooks.clear()
  receiver = await startReceiver()
  await webhooks.sql`
    insert into subscriptions (id, organization_id, url, events, status, created_at, updated_at)
    select 'wbs_' || lpad(n::text, 26, '0'), ${big}, 'https://example.com/', '{message.received}', 'paused', now(), now()
    from generate_series(1, ${subscriptions}::int) n
  `
  return () => receiver.close()
})

const eventsOf = (organizationId: string, count: number) => Array.from({ length: count }, () => ({ organizationId }))

/** Of the big organization; an event that came again, and waits although it was recorded, counts once. */
const counts = async () => {
  const [row] = await webhooks.sql<{ deliveries: number; events: number; waiting: number }[]>`
    select (select count(*)::int from deliveries where organization_id = ${big}) as deliveries,
      (select count(*)::int from events where organization_id = ${big}) as events,
      (select count(*)::int from event_backlog b where not exists
        (select from events e where e.organization_id = b.organization_id and e.event_id = b.event_id)) as waiting
  `
  return row ?? { deliveries: 0, events: 0, waiting: 0 }
}

const allRecorded = (events: number) => ({ deliveries: events * subscriptions, events, waiting: 0 })

/** Another instance, until the test is over. */
function startSecond() {
  const second = startFanOut(webhooks)
  onTestFinished(() => second.stop())
}

/** Takes the turn of the big organization away from the instances; answers what gives it back. */
async function holdTurn() {
  const session = ownSession(webhooks.sql, {})
  await session`select pg_advisory_lock(hashtextextended(${`fan-out ${big}`}, 0))`
  onTestFinished(() => session.end())
  return () => session.end()
}

/** No share comes back until the clock is released: to a machine that takes a second for ten events they are no flood. */
function stopClock() {
  const clock = vi.spyOn(performance, 'now').mockReturnValue(performance.now())
  onTestFinished(() => clock.mockRestore())
  return () => clock.mockRestore()
}

test('who makes a flood of deliveries waits behind it alone, and all of them are made, by two instances', async () => {
  startSecond()
  await webhooks.subscribe({ url: receiver.url })
  const giveBack = await holdTurn()
  const releaseClock = stopClock()
  await webhooks.emit(...eventsOf(big, 30), {})
  await until(async () => {
    const { events, waiting } = await counts()
    // A statement takes five, and the last of a share may go over it; of one of the shares some may be used by what was before.
    expect([events + waiting, events <= 28]).toEqual([30, true])
  })
  releaseClock()
  await until(() => expect(receiver.got).toHaveLength(1))
  expect((await counts()).waiting).toBeGreaterThan(0)
  await giveBack()
  await until(async () => expect(await counts()).toEqual(allRecorded(30)))
})

test('who changes customers in a flood waits behind it alone, and its events stay in their order', async () => {
  const events = ['customer.updated' as const]
  await webhooks.subscribe({ url: receiver.url, events })
  await webhooks.subscribe({ url: receiver.url, events }, systemCaller(big))
  const giveBack = await holdTurn()
  const change = { line: 'cus_1', type: 'customer.updated' }
  const flood = Array.from({ length: 60 }, () => ({ ...change, organizationId: big, eventId: newId('evt') }))
  const releaseClock = stopClock()
  const [other] = await webhooks.emit(change, ...flood)
  await until(async () => {
    const { events: recorded, waiting } = await counts()
    // Of its share some may be used by what was before.
    expect([recorded + waiting, recorded <= 40]).toEqual([60, true])
  })
  releaseClock()
  await giveBack()
  await until(() => expect(receiver.got).toHaveLength(61))
  const got = receiver.got.map(({ headers }) => headers['x-svc-event-id'])
  expect(got.filter((id) => id !== other)).toEqual(flood.map(({ eventId }) => eventId))
})

/** Each statement that records events takes a second, until the test is over. */
async function slowDown() {
  await webhooks.sql.unsafe(`
    create function slow() returns trigger language plpgsql as 'begin perform pg_sleep(1); return null; end';
    create trigger slow after insert on events for each statement execute function slow();
  `)
  // What it slows down is still under way.
  const drop = async () => void (await webhooks.sql.unsafe('drop function if exists slow cascade'))
  const end = () => until(drop, 20_000)
  onTestFinished(end)
  return end
}

test('nobody waits longer behind a flood since the database is slow', async () => {
  const speedUp = await slowDown()
  await webhooks.subscribe({ url: receiver.url })
  const giveBack = await holdTurn()
  await webhooks.emit(...eventsOf(big, 40), {})
  await until(() => expect(receiver.got).toHaveLength(1))
  expect((await counts()).events).toBeLessThan(20)
  await speedUp()
  await giveBack()
})

/** An event as it waits there. */
const headOf = (organizationId: string): EventRow['head'] => ({
  subject: 'event.messaging.something-happened',
  organization_id: organizationId,
  event_id: newId('evt'),
  type: 'message.received',
  source: 'svc',
  phone: null,
  line: null,
  except: null,
  at: new Date().toISOString(),
  trace: null,
  id_time: 'wbd_01KAAAAAAA',
})

const leave = (heads: ReturnType<typeof headOf>[]) => webhooks.sql`
  insert into event_backlog (organization_id, event_id, head, payload)
  select h ->> 'organization_id', h ->> 'event_id', h, '{}' from jsonb_array_elements(${JSON.stringify(heads)}::text::jsonb) h
`

test('organizations that wait take turns, however much one of them has', async () => {
  await webhooks.subscribe({ url: receiver.url })
  await leave([...Array.from({ length: 15 }, () => headOf(big)), headOf(webhooks.organizationId)])
  await until(async () => expect(await counts()).toEqual(allRecorded(15)))
  await until(() => expect(receiver.got).toHaveLength(1))
  // A turn is a statement, which takes five of them at most.
  const [row] = await webhooks.sql<{ behind: number }[]>`
    select count(*)::int as behind from events
    where ctid > (select ctid from events where organization_id = ${webhooks.organizationId})
  `
  expect(row?.behind).toBeGreaterThanOrEqual(10)
})

test('an event comes behind earlier ones that another instance has just put there', async () => {
  await holdTurn()
  const { recordUnlessTheyWait, known, stop } = startBacklog(webhooks, createRecorder(webhooks))
  onTestFinished(stop)
  await leave([headOf(big)])
  const next = { head: headOf(big), payload: Buffer.from('{}') }
  expect(await recordUnlessTheyWait([next])).toEqual({ rows: [], made: [] })
  expect(known()).toContain(big)
  expect(await counts()).toEqual({ deliveries: 0, events: 0, waiting: 1 })
})

test('what a dead instance left there is taken up, an event that comes again once', async () => {
  const [eventId = ''] = await webhooks.emit(...eventsOf(big, 1))
  await until(async () => expect(await counts()).toEqual(allRecorded(1)))
  const [recorded] = await webhooks.sql<{ at: Date }[]>`select at from events`
  const again = { ...headOf(big), event_id: eventId, at: recorded?.at.toISOString() ?? '' }
  const left = headOf(big)
  await webhooks.subscribe({ url: receiver.url })
  // An id is of an organization.
  await leave([again, left, { ...headOf(webhooks.organizationId), event_id: left.event_id }])
  await until(async () => expect(await counts()).toEqual(allRecorded(2)))
  await until(() => expect(receiver.got).toHaveLength(1))
})

test('events as large as they may be are written and read in parts', async () => {
  const large = JSON.stringify({ text: 'ä"'.repeat(210_000) })
  await webhooks.emit(...eventsOf(big, 8))
  // Recorded a few at a time, as a service would: all at once may take longer than a statement has.
  for (let n = 0; n < 12; n += 4)
    await webhooks.emit(...eventsOf(big, 4).map((event) => ({ ...event, payload: large })))
  await until(async () => expect(await counts()).toEqual(allRecorded(20)))
  const [row] = await webhooks.sql`select count(*)::int as large from events where payload = ${large}`
  expect(row).toEqual({ large: 12 })
})

test('events of one line stay in their order, though they wait and two instances make the deliveries', async () => {
  startSecond()
  await webhooks.subscribe({ url: receiver.url, events: ['customer.updated'] }, systemCaller(big))
  const line = Array.from({ length: 12 }, (_, n) => ({
    organizationId: big,
    line: 'cus_1',
    type: 'customer.updated',
    eventId: `${99 - n}-${newId('evt')}`,
  }))
  await webhooks.emit(...line.slice(0, 3), ...eventsOf(big, 30), ...line.slice(3, 9))
  await webhooks.emit(...line.slice(9))
  await until(() => expect(receiver.got).toHaveLength(line.length))
  expect(receiver.got.map(({ headers }) => headers['x-svc-event-id'])).toEqual(line.map(({ eventId }) => eventId))
})

test('an event that waits for its turn is told as that', async () => {
  const giveBack = await holdTurn()
  const releaseClock = stopClock()
  const ids = await webhooks.emit(...eventsOf(big, 20))
  const told = async () => {
    const { history } = await webhooks.ask(explainEvents, { body: { organization_id: big, event_ids: ids.slice(-1) } })
    return history.map(({ what }) => what)
  }
  await until(async () =>
    expect(await told()).toEqual([
      'message.received waits: the organization has used up its share of the fan-out, or an event before it fails',
    ]),
  )
  releaseClock()
  await giveBack()
  await until(async () => expect(await told()).toHaveLength(2 * subscriptions))
})
