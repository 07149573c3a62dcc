import { setTimeout as sleep } from 'node:timers/promises'
import { testService, type TestService } from '@app/test/service.ts'
import { until } from '@app/test/until.ts'
import { headers } from 'nats'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { consume, consumeBatches, type Consuming } from './consume.ts'
import { recordFailure } from './dead-events.ts'
import type { Delivered } from './events.ts'
import { event } from '../api/contract.ts'
import { record, recorded } from './events.ts'
import { newId } from '../values/ids.ts'
import { consumers, provision } from './provision.ts'
import { type Relay, startRelay } from './relay.ts'
import { eventHeader, streamName } from './stream.ts'

const changed = event({ subject: 'event.platform.account-changed', summary: 'Test', data: z.object({ n: z.int() }) })
const organizationId = newId('org')

let app: TestService
let relay: Relay
const consuming: Consuming[] = []

beforeAll(async () => {
  app = await testService('messaging')
  relay = startRelay(app)
})
afterAll(async () => {
  await Promise.all(consuming.map((one) => one.stop()))
  await relay.stop()
  await app.close()
})

/** So long that nothing comes again by itself while a test waits for it. */
async function keepForLong(consumer: string) {
  await provision(app.nc)
  const jsm = await app.nc.jetstreamManager()
  await jsm.consumers.update(streamName, consumer, { ack_wait: 120e9 })
  return jsm
}

async function emitNumber(n: number) {
  await app.sql.begin((tx) => record(tx, [recorded(changed, { n }, { organizationId })]))
  relay.wake()
}

test('recorded events arrive in their order; a rolled back one never', async () => {
  const seen: number[] = []
  consuming.push(
    consumeBatches(app, consumers.webhooksFanOut.name, async (events) => {
      for (const { payload } of events) seen.push((JSON.parse(Buffer.from(payload).toString()) as { n: number }).n)
    }),
  )
  for (let n = 0; n < 300; n++) await emitNumber(n)
  const undone = app.sql.begin(async (tx) => {
    await record(tx, [recorded(changed, { n: -1 }, { organizationId })])
    throw new Error('undone')
  })
  await expect(undone).rejects.toThrow('undone')
  await until(() => expect(seen).toHaveLength(300))
  expect(seen).toEqual(Array.from({ length: 300 }, (_, n) => n))
})

test('handled once, also when it is published again; the store of the stream lost, all is published again', async () => {
  const seen: number[] = []
  const listener = consume(app, consumers.messagingAccounts.name, changed, async (_tx, { n }) => void seen.push(n))
  consuming.push(listener)
  await until(() => expect(seen).toHaveLength(300))
  await app.nc.jetstreamManager().then((jsm) => jsm.streams.delete(streamName))
  await emitNumber(1_000)
  await until(() => expect(seen).toContain(1_000))
  const jsm = await app.nc.jetstreamManager()
  await until(async () => expect((await jsm.streams.info(streamName)).state.messages).toBe(301))
  expect(seen).toHaveLength(301)
})

test('events of two organizations that have one id are both handled', async () => {
  const seen: string[] = []
  const listener = consume(
    app,
    consumers.directoryAccounts.name,
    changed,
    async (_tx, _data, { organization, event }) => {
      if (event === 'evt_same') seen.push(organization)
    },
  )
  const both = [organizationId, newId('org')]
  await app.sql.begin((tx) =>
    record(
      tx,
      both.map((one) => recorded(changed, { n: 1 }, { organizationId: one, id: 'evt_same' })),
    ),
  )
  relay.wake()
  await until(() => expect(seen.toSorted()).toEqual(both.toSorted()))
  await listener.stop()
})

test('an event that does not fit its contract is set aside, and the next is handled', async () => {
  const other = event({ ...changed, data: z.object({ n: z.string() }) })
  await app.sql.begin((tx) => record(tx, [recorded(other, { n: 'no number' }, { organizationId })]))
  await emitNumber(2_000)
  await until(async () => {
    const dead = await app.sql`select consumer, dead from dead_events`
    expect(dead).toEqual([{ consumer: consumers.messagingAccounts.name, dead: true }])
  })
})

test('an event that failed with what Postgres cannot hold is noted all the same', async () => {
  const { name } = consumers.directoryTeams
  const about = headers()
  about.set(eventHeader, JSON.stringify({ organization: organizationId, event: 'evt_0', line: '\0' }))
  let tries = 0
  const listener = consumeBatches(app, name, async () => {
    if (++tries === 1) throw new Error('no \0')
  })
  await app.nc.jetstream().publish('event.platform.team-changed', '{}', { headers: about, msgID: 'zero' })
  await until(() => expect(tries).toBe(2))
  await listener.stop()
  expect(await app.sql`select headers->>'line' as line, last_error from dead_events where event_id = 'zero'`).toEqual([
    { line: '', lastError: 'no ' },
  ])
})

test('an event whose headers are malformed, or do not say whose and which it is, is set aside at once and named in the log, and the others are handled', async () => {
  const { name } = consumers.directoryMessagesRead
  const read = 'event.messaging.messages-read'
  const warned = vi.spyOn(app.log, 'error')
  const js = app.nc.jetstream()
  const [organization, event] = [organizationId, 'evt_whole']
  const unreadable = ['{"organization', 'null', '7']
  const nameless = [{}, { organization }, { event }].map((one) => JSON.stringify(one))
  for (const [n, text] of [...unreadable, ...nameless, JSON.stringify({ organization, event })].entries()) {
    const about = headers()
    about.set(eventHeader, text)
    await js.publish(read, JSON.stringify({ n }), { headers: about, msgID: `malformed:${n}` })
  }
  for (const n of [7, 8]) await js.publish(read, JSON.stringify({ n }))
  const seen: number[] = []
  consuming.push(
    consumeBatches(app, name, async (events) => {
      for (const { payload } of events) seen.push((JSON.parse(Buffer.from(payload).toString()) as { n: number }).n)
    }),
  )
  await until(() => expect(seen).toEqual([6]))
  expect(
    await app.sql`
      select event_id, headers, failures, dead from dead_events where consumer = ${name} and event_id like 'malformed:%'
      order by event_id
    `,
  ).toEqual(
    [{}, {}, {}, {}, { organization }, { event }].map((said, n) => ({
      eventId: `malformed:${n}`,
      headers: said,
      failures: 1,
      dead: true,
    })),
  )
  await until(async () =>
    expect(
      await app.sql`
        select convert_from(payload, 'UTF8') as said from dead_events where consumer = ${name} and event_id like 'seq:%'
        order by said
      `,
    ).toEqual([{ said: '{"n":7}' }, { said: '{"n":8}' }]),
  )
  const lines = warned.mock.calls.map(([line]) => line as unknown)
  warned.mockRestore()
  expect(lines).toContainEqual(expect.objectContaining({ consumer: name, id: 'malformed:0', subject: read }))
})

test('an event that takes longer than a statement may does not hold up the others, and nothing is counted against it', async () => {
  const added = event({ ...changed, subject: 'event.messaging.marketing-stopped' })
  const seen: number[] = []
  let isSlow = true
  consuming.push(
    consume(app, consumers.directoryMarketingStops.name, added, async (tx, { n }) => {
      await tx`set local statement_timeout = 50`
      if (n === 2 && isSlow) await tx`select pg_sleep(10)`
      seen.push(n)
    }),
  )
  await app.sql.begin((tx) =>
    record(
      tx,
      [1, 2, 3].map((n) => recorded(added, { n }, { organizationId })),
    ),
  )
  relay.wake()
  await until(() => expect(seen).toEqual([1, 3]))
  isSlow = false
  await until(() => expect(seen).toEqual([1, 3, 2]))
  expect(
    await app.sql`select event_id from dead_events where consumer = ${consumers.directoryMarketingStops.name}`,
  ).toEqual([])
})

test('a consumer that has time takes together what comes in it', async () => {
  const sent = event({ ...changed, subject: 'event.messaging.message-sent' })
  const begun: number[] = []
  let seen = 0
  const handle = async (events: Delivered[]) => {
    begun.push(performance.now())
    seen += events.length
  }
  consuming.push(consumeBatches(app, consumers.directorySentMessages.name, handle, { spacingMs: 200 }))
  for (let n = 0; n < 40; n++) {
    await app.sql.begin((tx) => record(tx, [recorded(sent, { n }, { organizationId })]))
    relay.wake()
  }
  await until(() => expect(seen).toBe(40))
  const gaps = begun.slice(1).map((at, n) => at - (begun[n] ?? 0))
  // A busy machine may have called the first of two some milliseconds late.
  expect(gaps.map((gap) => gap > 150)).toEqual(gaps.map(() => true))
})

test('an event that cannot be published is set aside, and the log names it without a word of what it says', async () => {
  const lines: string[] = []
  const logged = vi.spyOn(app.log, 'error').mockImplementation((line: unknown) => void lines.push(JSON.stringify(line)))
  const text = 'a word in private '.repeat(500_000)
  await app.sql`
    insert into outbox (id, subject, headers, payload)
    values ('too:large', 'event.platform.account-changed', ${`{"organization": "${organizationId}"}`}::text::jsonb,
      convert_to(${text}, 'UTF8'))
  `
  relay.wake()
  await until(async () => {
    const rows = await app.sql`select refused from outbox where id = 'too:large'`
    expect(rows).toEqual([{ refused: 'MAX_PAYLOAD_EXCEEDED' }])
  })
  logged.mockRestore()
  expect(lines.join()).toContain('too:large')
  expect(lines.join()).not.toContain('private')
})

test('two that provision at once on what is there make no error', async () => {
  await Promise.all([provision(app.nc), provision(app.nc)])
})

test('one that is told to stop while it asks for its consumer stops', async () => {
  const one = consumeBatches(app, consumers.directoryTeams.name, () => Promise.resolve())
  const stopped = one.stop().then(() => 'stopped')
  expect(await Promise.race([stopped, sleep(5_000, 'still there')])).toBe('stopped')
})

test('what an instance that stops has not begun goes to another one at once', async () => {
  const { name } = consumers.directoryTeams
  const emitTeams = (from: number, to: number) => {
    const numbers = Array.from({ length: to - from }, (_, n) => from + n)
    const rows = numbers.map((n) =>
      recorded({ ...changed, subject: 'event.platform.team-changed' }, { n }, { organizationId }),
    )
    return app.sql.begin((tx) => record(tx, rows)).then(relay.wake)
  }
  const numbersOf = (events: Delivered[]) =>
    events.map(({ payload }) => (JSON.parse(Buffer.from(payload).toString()) as { n: number }).n)
  const begun = Promise.withResolvers<void>()
  const goOn = Promise.withResolvers<void>()
  const [first, second]: [number[], number[]] = [[], []]
  const jsm = await keepForLong(name)
  const stopping = consumeBatches(app, name, async (events) => {
    begun.resolve()
    await goOn.promise
    await app.sql`select pg_sleep(0.2)`
    first.push(...numbersOf(events))
  })
  await emitTeams(0, 1)
  await begun.promise
  await emitTeams(1, 50)
  await until(async () => expect((await jsm.consumers.info(streamName, name)).num_ack_pending).toBe(50))
  consuming.push(consumeBatches(app, name, async (events) => void second.push(...numbersOf(events))))
  await until(async () => expect((await jsm.consumers.info(streamName, name)).num_waiting).toBeGreaterThan(1))
  const stopped = stopping.stop()
  goOn.resolve()
  await stopped
  expect(first).toEqual([0])
  await until(() => expect(new Set([...first, ...second]).size).toBe(50))
  expect(first).toEqual([0])
})

test('what an instance that stops has begun without its database goes to another one at once', async () => {
  const { name } = consumers.platformAccountReports
  let tries = 0
  let handled = 0
  await keepForLong(name)
  const stopping = consumeBatches(app, name, () => {
    tries++
    return Promise.reject(Object.assign(new Error('refused'), { code: 'ECONNREFUSED' }))
  })
  const row = recorded({ ...changed, subject: 'event.messaging.account-reported' }, { n: 1 }, { organizationId })
  await app.sql.begin((tx) => record(tx, [row]))
  relay.wake()
  await until(() => expect(tries).toBeGreaterThan(0))
  consuming.push(consumeBatches(app, name, async () => void handled++))
  await stopping.stop()
  await until(() => expect(handled).toBe(1))
})

test('an event at which the handler fails while its failure cannot be noted, comes again soon, and ends nothing', async () => {
  const { name } = consumers.directoryMembers
  let tries = 0
  await app.sql`alter table dead_events rename to dead_events_away`
  consuming.push(
    consumeBatches(app, name, async () => {
      if (++tries === 1) throw new Error('once')
    }),
  )
  const row = recorded({ ...changed, subject: 'event.platform.member-changed' }, { n: 1 }, { organizationId })
  await app.sql.begin((tx) => record(tx, [row]))
  relay.wake()
  await until(() => expect(tries).toBe(1))
  await app.sql`alter table dead_events_away rename to dead_events`
  await until(() => expect(tries).toBe(2), 5_000)
})

test('an event that will never succeed is set aside at once, also when it had failed otherwise before', async () => {
  const headers = { organization: organizationId, event: newId('evt'), at: new Date().toISOString() }
  const failed = { id: newId('evt'), subject: changed.subject, headers, payload: Buffer.from('{}') }
  const fail = (fatal: boolean) => recordFailure(app.sql, 'any', failed, { err: new Error('why'), fatal })
  expect(await fail(false)).toEqual({ failures: 1, dead: false })
  expect(await fail(true)).toEqual({ failures: 2, dead: true })
})

test('an event at which the handler always fails is set aside after eight tries and counted, and the others flow meanwhile', async () => {
  const { name } = consumers.directoryAccounts
  const seen: number[] = []
  let tries = 0
  consuming.push(
    consume(app, name, changed, async (_tx, { n }) => {
      if (n === 3_000) throw new Error(`try ${++tries}`)
      seen.push(n)
    }),
  )
  await emitNumber(3_000)
  await emitNumber(3_001)
  await until(() => expect(seen).toContain(3_001))
  const poison = () => app.sql<{ failures: number; dead: boolean; lastError: string }[]>`
    select failures, dead, last_error from dead_events where consumer = ${name} and last_error like 'try %'
  `
  await until(async () => expect((await poison())[0]?.failures).toBeGreaterThan(0))
  expect((await poison())[0]?.dead).toBe(false)
  // The waits between the tries double, a minute and a half in all: the next one is made the eighth.
  await app.sql`update dead_events set failures = 7 where consumer = ${name} and last_error like 'try %'`
  await until(async () => expect(await poison()).toMatchObject([{ failures: 8, dead: true }]))
  const last = tries
  await emitNumber(3_002)
  await until(() => expect(seen).toContain(3_002))
  const jsm = await app.nc.jetstreamManager()
  await until(async () => {
    const { num_ack_pending: pending, num_pending: waiting } = await jsm.consumers.info(streamName, name)
    expect([pending, waiting]).toEqual([0, 0])
  })
  expect(tries).toBe(last)
  expect((await poison())[0]?.lastError).toBe(`try ${last}`)
  const metrics = await app.probes.metrics.metrics()
  expect(metrics).toMatch(new RegExp(`svc_dead_events\\{[^}]*consumer="${name}"[^}]*\\} [1-9]`))
  expect(seen.filter((n) => n > 2_999)).toEqual([3_001, 3_002])
})
