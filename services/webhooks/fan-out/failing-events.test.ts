import { newId } from '@app/shared/values/ids.ts'
import { until } from '@app/test/until.ts'
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { explainEvents } from '../explain/explain-deliveries.ts'
import { testWebhooks, type TestWebhooks } from '../testing/app.ts'
import { type Receiver, startReceiver } from '../testing/receiver.ts'
import { systemCaller } from '@app/shared/bus/ask.ts'
import { createFailingEvents } from './failing-events.ts'
import { toEvent, toRow } from './record-events.ts'

let webhooks: TestWebhooks
let receiver: Receiver
const other = newId('org')

beforeAll(async () => {
  webhooks = await testWebhooks()
})
afterAll(() => webhooks.close())

beforeEach(async () => {
  await webhooks.clear()
  await webhooks.sql`truncate dead_events`
  receiver = await startReceiver()
  for (const caller of [webhooks.caller, systemCaller(other)])
    await webhooks.subscribe({ url: receiver.url, events: ['customer.updated'] }, caller)
  return () => receiver.close()
})

const updated = (line: string, eventId: string, organizationId = webhooks.organizationId) => ({
  organizationId,
  line,
  type: 'customer.updated',
  eventId,
})

const got = () => receiver.got.map(({ headers }) => headers['x-svc-event-id'])

const failures = () => webhooks.sql<{ eventId: string; dead: boolean }[]>`
  select consumer, event_id, subject, headers ->> 'line' as line, failures, dead from dead_events
`

/** What the operator is told of an event that was recorded. */
async function explained(eventId: string) {
  const told = [{ id: eventId, type: 'customer.updated', phone_number_id: null }]
  const body = { organization_id: webhooks.organizationId, event_ids: [eventId], told }
  const { history } = await webhooks.ask(explainEvents, { body })
  return history.map(({ what }) => what).join()
}

/** The statement that records it does this. Answers how often it did, and what ends it. */
async function poison(eventId: string, what: string) {
  await webhooks.sql.unsafe(`
    create sequence poisoned;
    create function poison() returns trigger language plpgsql as $$ begin
      if exists (select from fresh where event_id = '${eventId}') then perform nextval('poisoned'); ${what}; end if; return null;
    end $$;
    create trigger poison after insert on events referencing new table as fresh for each statement execute function poison();
  `)
  const drop = async () => void (await webhooks.sql.unsafe('drop function if exists poison cascade'))
  onTestFinished(async () => {
    await until(drop, 20_000)
    await webhooks.sql`drop sequence poisoned`
  })
  const tries = async () =>
    (
      await webhooks.sql<[{ count: number }]>`
      select case when is_called then last_value else 0 end::int as count from poisoned
    `
    )[0].count
  return { tries, end: () => until(drop, 20_000) }
}

test('an event of a line that always fails holds those of its organization alone, and is given up after eight tries', async () => {
  const [first, second, third] = [newId('evt'), newId('evt'), newId('evt')]
  const ofOthers = [newId('evt'), newId('evt')] as const
  await poison(first, `raise 'poison'`)
  await webhooks.emit(updated('cus_1', first), updated('cus_1', second), updated('cus_9', ofOthers[0], other))
  await until(() => expect(got()).toEqual([ofOthers[0]]))
  await until(async () => expect(await failures()).toMatchObject([{ dead: false }]))
  expect(await explained(first)).toBe('customer.updated waits: it could not be fanned out, and is tried again')
  await webhooks.emit(updated('cus_1', third), updated('cus_9', ofOthers[1], other))
  await until(() => expect(got()).toEqual(ofOthers))
  // The waits between the tries double, a minute and a half in all: the next one is made the eighth.
  await webhooks.sql`update dead_events set failures = 7`
  await until(() => expect(got()).toEqual([...ofOthers, second, third]), 10_000)
  expect(await failures()).toEqual([
    {
      consumer: 'webhooks-in-order',
      eventId: `${webhooks.organizationId}:${first}`,
      subject: 'event.platform.something-happened',
      line: 'cus_1',
      failures: 8,
      dead: true,
    },
  ])
  expect(await explained(first)).toMatch(/: the fan-out of the event failed eight times, and was given up$/)
})

test('an event of a line that takes too long holds nobody else, and counts for nothing', async () => {
  const [slow, beside] = [newId('evt'), newId('evt')]
  await poison(slow, `raise 'too slow' using errcode = '57014'`)
  await webhooks.emit(updated('cus_1', slow), updated('cus_9', beside, other))
  await until(() => expect(got()).toEqual([beside]))
  expect(await failures()).toEqual([])
  expect(await webhooks.sql`select event_id from event_backlog`).toEqual([{ eventId: slow }])
})

test('one that somebody stood in the way of for a moment is recorded a moment later, and what waits behind it', async () => {
  const [held, behind] = [newId('evt'), newId('evt')]
  const { tries, end } = await poison(held, `raise 'held' using errcode = '55P03'`)
  await webhooks.emit(updated('cus_1', held), updated('cus_1', behind))
  // By the consumer, and then in the backlog.
  await until(async () => expect(await tries()).toBeGreaterThanOrEqual(2))
  await end()
  await until(() => expect(got()).toEqual([held, behind]), 8_000)
})

test('the pause doubles up to half a minute, and another event begins anew', async () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  onTestFinished(() => void vi.useRealTimers())
  const { failed, isPaused } = createFailingEvents(webhooks)
  const err = Object.assign(new Error('held'), { code: '55P03' })
  const pauses: number[] = []
  for (const eventId of ['slow', 'slow', 'slow', 'slow', 'slow', 'slow', 'slow', 'next']) {
    const row = toRow({
      subject: 'event.platform.something-happened',
      headers: { organization: other, event: eventId, type: 'customer.updated', at: new Date().toISOString() },
      payload: Buffer.from('{}'),
    })
    if (row) await failed(row, err)
    let seconds = 0
    for (; isPaused(other); seconds++) vi.advanceTimersByTime(1_000)
    pauses.push(seconds)
  }
  expect(pauses).toEqual([1, 2, 4, 8, 16, 30, 30, 1])
})

test('an event that waits is the one that came, when it is given up', () => {
  const event = {
    subject: 'event.platform.something-happened',
    headers: {
      organization: other,
      event: newId('evt'),
      type: 'customer.updated',
      source: 'upstream' as const,
      phone: '106540352242922',
      line: 'cus_1',
      except: newId('wbs'),
      trace: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`,
      at: new Date().toISOString(),
    },
    payload: Buffer.from('{}'),
  }
  const row = toRow(event)
  expect(row && toEvent(row)).toEqual(event)
})

function rowOf(organization: string, event: string, line?: string) {
  const headers = { organization, event, type: 'customer.updated', line, at: new Date().toISOString() }
  const row = toRow({ subject: 'event.platform.something-happened', headers, payload: Buffer.from('{}') })
  if (!row) throw new Error('it has a type')
  return row
}

/** Events wait in the backlog. */
const leave = (rows: ReturnType<typeof rowOf>[]) => webhooks.sql`
  insert into event_backlog (organization_id, event_id, head, payload)
  select h ->> 'organization_id', h ->> 'event_id', h, '{}'
  from jsonb_array_elements(${JSON.stringify(rows.map(({ head }) => head))}::text::jsonb) h
`

test('one that fails is not held against the one before it, with which it was to be recorded', async () => {
  const { organizationId } = webhooks
  const [before, good, bad] = [newId('evt'), newId('evt'), newId('evt')]
  await webhooks.emit(updated('cus_1', before))
  await until(() => expect(got()).toEqual([before]))
  await poison(bad, `raise 'poison'`)
  await leave([rowOf(organizationId, good, 'cus_1'), rowOf(organizationId, bad, 'cus_1')])
  await until(() => expect(got()).toEqual([before, good]))
  await until(async () => expect(await failures()).toMatchObject([{ eventId: `${organizationId}:${bad}` }]))
})

test('what is given up leaves the backlog, as what its own consumer failed at, and nothing else leaves it', async () => {
  const { sql } = webhooks
  const [one, another] = [newId('org'), newId('org')]
  const rows = [rowOf(one, 'first'), rowOf(one, 'second', 'cus_1'), rowOf(another, 'first')]
  await sql.begin(async (tx) => {
    // As another instance does that has their turns.
    for (const id of [one, another]) await tx`select pg_advisory_xact_lock(hashtextextended(${`fan-out ${id}`}, 0))`
    await leave(rows)
    const { failed, isPaused } = createFailingEvents(webhooks)
    for (const row of rows.slice(0, 2)) await failed(row, new Error('poison'))
    expect([isPaused(one), isPaused(another)]).toEqual([true, false])
    await sql`update dead_events set failures = 7`
    for (const row of rows.slice(0, 1)) await failed(row, new Error('poison'))
    const left = await sql`select organization_id, event_id from event_backlog order by seq`
    expect(left).toEqual([
      { organizationId: one, eventId: 'second' },
      { organizationId: another, eventId: 'first' },
    ])
    await sql`delete from event_backlog`
  })
  expect((await failures()).toSorted((a, b) => Number(b.dead) - Number(a.dead))).toMatchObject([
    { consumer: 'webhooks-fan-out', eventId: `${one}:first`, failures: 8, dead: true },
    { consumer: 'webhooks-in-order', eventId: `${one}:second`, failures: 7, dead: false },
  ])
})

test('an event of a line without a time is given up at once', async () => {
  const [never, beside] = [newId('evt'), newId('evt')]
  const headers = { organization: webhooks.organizationId, event: never, type: 'customer.updated', line: 'cus_1' }
  await webhooks.sql`
    insert into outbox (id, subject, headers, payload)
    values (${never}, 'event.platform.something-happened', ${JSON.stringify(headers)}::text::jsonb, '{}')
  `
  await webhooks.emit(updated('cus_9', beside, other))
  await until(() => expect(got()).toEqual([beside]))
  expect(await failures()).toMatchObject([{ eventId: never, failures: 1, dead: true }])
})
