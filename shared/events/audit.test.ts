import { testService, type TestService } from '@app/test/service.ts'
import { until } from '@app/test/until.ts'
import type { JetStreamManager } from 'nats'
import { afterAll, afterEach, beforeAll, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'
import { event } from '../api/contract.ts'
import type { Sweep } from '../database/housekeeping.ts'
import { newId } from '../values/ids.ts'
import { auditEvents } from './audit.ts'
import { type Consuming, consumeBatches } from './consume.ts'
import { record, recorded } from './events.ts'
import { findHandled } from './handled-ranges.ts'
import { consumers, managerOf, provision } from './provision.ts'
import { type Relay, startRelay } from './relay.ts'
import { streamName } from './stream.ts'
import { emptyEvents } from '../testing/empty-events.ts'

const changed = event({ subject: 'event.webhooks.changed', summary: 'Test', data: z.object({ n: z.number() }) })
const organizationId = newId('org')
const consumer = consumers.webhooksFanOut.name

/** What is published again within that time is turned away for its id: the least that the server takes, else two minutes. */
const idKnownMs = 100

let app: TestService
/** Another service. */
let platform: TestService
let jsm: JetStreamManager
let relay: Relay
let consuming: Consuming | undefined
let sweep: Sweep
/** What the consumer was given. */
let heard: number[]
beforeAll(async () => {
  ;[app, platform] = await Promise.all([testService('webhooks'), testService('platform')])
  jsm = await managerOf(app.nc)
})
afterAll(() => Promise.all([app.close(), platform.close()]))
beforeEach(async () => {
  await provision(app.nc)
  const { config } = await jsm.streams.info(streamName)
  await jsm.streams.update(streamName, { ...config, duplicate_window: idKnownMs * 1e6 })
  relay = startRelay(app)
  sweep = auditEvents(app)
  heard = []
  consuming = undefined
})
afterEach(async () => {
  await relay.stop()
  await consuming?.stop()
  await emptyEvents(app)
  vi.restoreAllMocks()
})

const listen = (handle: (n: number) => void = () => {}) => {
  consuming = consumeBatches(
    app,
    consumer,
    async (events) => {
      const numbers = events.map(({ payload }) => changed.data.parse(JSON.parse(Buffer.from(payload).toString())).n)
      for (const n of numbers) handle(n)
      heard.push(...numbers)
    },
    { noteAfterMs: 4 * idKnownMs },
  )
}
/** Its statements take too long: it is paused. */
const slowAt = (slow: number) => (n: number) => {
  if (n === slow) throw Object.assign(new Error('canceling statement due to statement timeout'), { code: '57014' })
}
const publish = async (...numbers: number[]) => {
  const before = await published()
  await app.sql.begin((tx) =>
    record(
      tx,
      numbers.map((n) => recorded(changed, { n }, { organizationId })),
    ),
  )
  relay.wake()
  await until(async () => expect(await published()).toBe(before + numbers.length))
}
/** How many the stream got, when none waits any more. */
const published = async () => {
  relay.wake()
  await until(async () => expect(await app.sql`select from outbox where published_at is null`).toHaveLength(0))
  return (await jsm.streams.info(streamName)).state.last_seq
}
const untilHeard = (...numbers: number[]) => until(() => expect(heard).toEqual(numbers))
const untilNoted = (seqs: string) =>
  until(async () => {
    const source = 'webhooks'
    expect((await findHandled(app.sql, { consumer, source, first: 1, last: 1_000 })).seqs).toBe(seqs)
  })

/** Looks when everything has had its time. */
async function lookLater() {
  await app.sql`update outbox_marks set at = now() - interval '1 hour'`
  await app.sql`update event_audits set looked_at = looked_at - interval '1 hour'`
  await app.sql`update outbox set published_at = now() - interval '1 hour' where published_at is not null`
  await app.sql`update handled_ranges set at = now() - interval '20 s'`
  await sweep(app.sql)
}
const auditedSeq = async () => {
  const [row] = await app.sql<
    { auditedSeq: string }[]
  >`select audited_seq from event_audits where consumer = ${consumer}`
  return Number(row?.auditedSeq)
}

/** What is known of events that are missing. */
const missed = () => app.sql`select looks, was_passed, tries from event_audits where consumer = ${consumer}`

test('an event that the stream has lost before it was handled comes all the same', async () => {
  await sweep(app.sql)
  await publish(1, 2, 3)
  await jsm.streams.deleteMessage(streamName, 2)
  await sweep(app.sql)
  listen()
  await untilHeard(1, 3)
  await untilNoted('{[1,2),[3,4)}')
  await lookLater()
  // Another instance that comes at the same time.
  await auditEvents(app)(app.sql)
  expect(await published()).toBe(3)
  await lookLater()
  await untilHeard(1, 3, 2)
  await untilNoted('{[1,4)}')
  await lookLater()
  expect(await auditedSeq()).toBe(3)
})

test('what a consumer has handled does not come again, also when it was handled in vain or by an instance that stops', async () => {
  await sweep(app.sql)
  await publish(1, 2, 3)
  await sweep(app.sql)
  listen((n) => {
    if (n === 2) throw new Error('it never succeeds')
  })
  await app.sql`
    insert into dead_events (consumer, event_id, subject, headers, payload, failures, last_error)
    select ${consumer}, id, subject, headers, payload, 7, 'before' from outbox where seq = 2
  `
  await untilHeard(1, 3)
  await until(async () => expect(await app.sql`select from dead_events where dead`).toHaveLength(1))
  await consuming?.stop()
  await lookLater()
  expect(await auditedSeq()).toBe(3)
  await lookLater()
  expect(await published()).toBe(3)
})

test('what waits in the stream is waited for, however long', async () => {
  await sweep(app.sql)
  await publish(1, 2)
  await sweep(app.sql)
  for (let n = 0; n < 18; n++) await lookLater()
  expect([await published(), await auditedSeq()]).toEqual([2, 0])
  listen()
  await untilNoted('{[1,3)}')
  await lookLater()
  expect([await published(), await auditedSeq()]).toEqual([2, 2])
})

test('while others are in work, what is missing is judged when all that was there has been handled', async () => {
  await sweep(app.sql)
  await publish(1, 2)
  await sweep(app.sql)
  listen()
  await untilNoted('{[1,3)}')
  await app.sql`update handled_ranges set seqs = '{[1,2)}', last = 1`
  // One that nobody takes: the consumer is never idle.
  await consuming?.stop()
  await publish(3)
  for (let n = 0; n < 3; n++) await lookLater()
  expect(await published()).toBe(3)
  listen(slowAt(4))
  await publish(4)
  await untilNoted('{[1,2),[3,4)}')
  await lookLater()
  expect(await published()).toBe(4)
  await lookLater()
  await until(async () => expect(await published()).toBe(5))
})

test('what a consumer pauses, and handles newer ones, is in its hands, and not for ever', async () => {
  await sweep(app.sql)
  listen(slowAt(1))
  await publish(1)
  await publish(2)
  await untilNoted('{[2,3)}')
  await sweep(app.sql)
  await lookLater()
  await publish(3)
  await untilNoted('{[2,4)}')
  for (let looks = 2; looks <= 15; looks++) await lookLater()
  expect(await published()).toBe(3)
  await lookLater()
  await until(async () => expect(await published()).toBe(4))
})

test('what waited to be published when it was missed, or is published again, may wait in the stream', async () => {
  const errors = vi.spyOn(app.log, 'error')
  await sweep(app.sql)
  await relay.stop()
  await app.sql.begin((tx) => record(tx, [recorded(changed, { n: 1 }, { organizationId })]))
  await sweep(app.sql)
  await app.sql`update outbox_marks set at = now() - interval '1 hour'`
  await sweep(app.sql)
  relay = startRelay(app)
  expect(await published()).toBe(1)
  for (let n = 0; n < 3; n++) await lookLater()
  expect(errors).toHaveBeenCalledTimes(0)
  await jsm.streams.purge(streamName)
  await new Promise((resolve) => setTimeout(resolve, 2 * idKnownMs))
  for (let n = 0; n < 2; n++) await lookLater()
  expect(await published()).toBe(2)
  for (let n = 0; n < 3; n++) await lookLater()
  expect(errors).toHaveBeenCalledTimes(1)
})

test('what nobody handles, however often it is published again, is given up and said so', async () => {
  const errors = vi.spyOn(app.log, 'error')
  await sweep(app.sql)
  await publish(1)
  await sweep(app.sql)
  listen()
  await untilHeard(1)
  for (let tries = 1; tries <= 3; tries++) {
    await untilNoted('{[1,2)}')
    await app.sql`truncate handled_ranges`
    await lookLater()
    await lookLater()
    await until(async () => expect(await published()).toBe(1 + tries))
  }
  await untilNoted('{[1,2)}')
  await app.sql`truncate handled_ranges`
  await lookLater()
  await lookLater()
  expect([await published(), await auditedSeq()]).toEqual([4, 1])
  expect(await missed()).toEqual([{ looks: 0, wasPassed: false, tries: 0 }])
  expect(errors.mock.calls.map(([, words]) => words)).toEqual([
    ...Array.from({ length: 3 }, () => 'events were published and never handled: they are published again'),
    'events were published again and again, and not handled: they are given up',
  ])
})

test('what was published before the first look, or waits to be published, or was published just now, is not judged', async () => {
  await publish(1)
  await sweep(app.sql)
  expect(await auditedSeq()).toBe(1)
  await publish(2, 3)
  await sweep(app.sql)
  await jsm.streams.purge(streamName)
  await app.sql`update outbox_marks set at = now() - interval '1 hour'`
  for (let n = 0; n < 3; n++) await sweep(app.sql)
  expect([await published(), await auditedSeq()]).toEqual([3, 1])
  await relay.stop()
  await app.sql`update outbox set published_at = null where seq = 3`
  await lookLater()
  expect(await app.sql`select seq from outbox where published_at is null`).toEqual([{ seq: '3' }])
})

test('a look that lasts goes on, in portions, until all was seen', async () => {
  sweep = auditEvents(app, { mostALook: 500 })
  await sweep(app.sql)
  await app.sql`
    insert into outbox (seq, id, subject, headers, payload, published_at)
    select n, n, 'event.webhooks.changed', '{}', '', now() from generate_series(1, 1200) n
  `
  await app.sql`select setval('outbox_seq', 1200)`
  await app.sql`
    insert into handled_ranges (consumer, source, seqs, first, last)
    values (${consumer}, 'webhooks', '{[1,600),[601,1201)}', 1, 1200)
  `
  await sweep(app.sql)
  await lookLater()
  expect(await auditedSeq()).toBe(500)
  await lookLater()
  await until(async () => expect(await published()).toBe(1))
  await app.sql`update handled_ranges set seqs = '{[1,1201)}'`
  await lookLater()
  expect(await auditedSeq()).toBe(1_200)
})

test('a look that takes longer than a statement may becomes smaller until it comes further', async () => {
  await sweep(app.sql)
  /** Of every second one no note is made: each look reads those. */
  async function publish(first: number, last: number) {
    await app.sql`
      insert into outbox (seq, id, subject, headers, payload, published_at, refused)
      select n, n, 'event.webhooks.changed', '{}', '', now(), case when n % 2 = 0 then 'why' end
      from generate_series(${first}::int, ${last}::int) n
    `
    await app.sql`select setval('outbox_seq', ${last})`
    await app.sql`
      insert into handled_ranges (consumer, source, seqs, first, last)
      select ${consumer}, 'webhooks', range_agg(int8range(n, n, '[]')), ${first}, ${last - 1}
      from generate_series(${first}::int, ${last}::int, 2) n
    `
  }
  await publish(1, 6_000)
  const looks: number[] = []
  const sql = new Proxy(app.sql, {
    apply(target, self, args: [TemplateStringsArray, ...unknown[]]) {
      const [words, , first, last] = args
      if (!words[0]?.includes('select seq::float8, id')) return Reflect.apply(target, self, args)
      looks.push(Number(last) - Number(first) + 1)
      const tooLong = Object.assign(new Error('canceling statement due to statement timeout'), { code: '57014' })
      return Number(last) - Number(first) < 1_000 ? Reflect.apply(target, self, args) : Promise.reject(tooLong)
    },
  })
  sweep = auditEvents({ ...app, sql }, { mostALook: 5_000 })
  await sweep(app.sql)
  for (let n = 0; n < 3; n++) await lookLater()
  expect(looks.slice(0, 3)).toEqual([5_000, 1_250, 312])
  expect(await auditedSeq()).toBe(6_000)
  looks.length = 0
  await publish(6_001, 8_000)
  await sweep(app.sql)
  await lookLater()
  expect(looks[0]).toBeGreaterThan(312)
})

test('what was lost waits to be published again by one reading of the events: for tens of thousands, a search for each takes too long', async () => {
  await sweep(app.sql)
  await relay.stop()
  await app.sql`
    insert into outbox (seq, id, subject, headers, payload, published_at)
    select n, n, 'event.webhooks.changed', '{}', convert_to(repeat('a', 1000), 'UTF8'), now() from generate_series(1, 2000) n
  `
  await app.sql`analyze outbox`
  await app.sql`select setval('outbox_seq', 2000)`
  await app.sql`
    insert into handled_ranges (consumer, source, seqs, first, last)
    select ${consumer}, 'webhooks', range_agg(int8range(n, n, '[]')), 1, 2000 from generate_series(1, 2000, 2) n
  `
  const searches: number[] = []
  const sql = new Proxy(app.sql, {
    apply(target, self, args: [TemplateStringsArray, ...(string | number)[]]) {
      const [words, ...values] = args
      if (!words[0]?.includes('update outbox set published_at = null')) return Reflect.apply(target, self, args)
      return target.begin(async (tx) => {
        const done = await tx(words, ...values)
        const [count] = await tx<[{ count: number }]>`
          select sum(idx_scan)::int as count from pg_stat_xact_user_tables where relname like 'outbox%'
        `
        searches.push(count.count)
        return done
      })
    },
  })
  sweep = auditEvents({ ...app, sql })
  await sweep(app.sql)
  await lookLater()
  await lookLater()
  const [row] = await app.sql`
    select count(*)::int, bool_and(seq % 2 = 0) as is_even from outbox where published_at is null
  `
  expect(row).toEqual({ count: 1_000, isEven: true })
  expect(searches).toHaveLength(1)
  // One of each partition.
  expect(searches[0]).toBeLessThan(100)
})

/** The other service, which looks as it is told to. */
async function another() {
  await provision(platform.nc)
  onTestFinished(() => emptyEvents(platform))
  const look = auditEvents(platform)
  const recordOne = (id: string) => platform.sql`
    insert into outbox (id, subject, headers, payload, published_at)
    values (${id}, 'event.platform.account-changed', '{}', '', now() - interval '1 hour')
  `
  const answer = (service: string, say: (question: object) => { seqs: string; newest: number | null }) => {
    const answering = platform.nc.subscribe(`rpc.${service}.handled-ranges`, {
      callback: (_err, message) => void message.respond(JSON.stringify({ data: say(message.json()) })),
    })
    onTestFinished(() => answering.unsubscribe())
  }
  return { look, recordOne, answer }
}

test('another service is asked about its consumers, from its first answer on; what is not for them, or was never published, is none of theirs', async () => {
  const { look, recordOne, answer } = await another()
  await recordOne('first')
  // Nobody is there to answer, or notes anything.
  await look(platform.sql)
  await recordOne('before')
  const asked: object[] = []
  answer('messaging', (question) => {
    asked.push(question)
    return { seqs: '{[5,6)}', newest: 5 }
  })
  await look(platform.sql)
  await platform.sql`
    insert into outbox (id, subject, headers, payload, published_at, refused) values
      ('for others', 'event.platform.team-changed', '{}', '', now(), null),
      ('refused', 'event.platform.account-changed', '{}', '', null, 'why'),
      ('handled', 'event.platform.account-changed', '{}', '', now(), null),
      ('lost', 'event.platform.account-changed', '{}', '', now() - interval '1 hour', null)
  `
  // The consumer has nothing left, and has never got as far as the stream.
  await platform.nc.jetstream().publish('event.platform.team-changed', '{}')
  const looksLater = async () => {
    await look(platform.sql)
    await platform.sql`update outbox_marks set at = now() - interval '1 hour'`
    await platform.sql`update event_audits set looked_at = looked_at - interval '1 hour'`
    await look(platform.sql)
  }
  await looksLater()
  const lost = () => platform.sql`select id from outbox where published_at is null and refused is null`
  await until(async () => {
    await looksLater()
    expect(await lost()).toEqual([{ id: 'lost' }])
  })
  expect(asked[1]).toEqual({ consumer: 'messaging-accounts', source: 'platform', first: 3, last: 6 })
})

test('a service that has recorded nothing yet is audited from its first event, whoever answers', async () => {
  const { look } = await another()
  await look(platform.sql)
  const rows = await platform.sql`select distinct audited_seq from event_audits`
  expect(rows).toEqual([{ auditedSeq: '0' }])
})

test('consumers are audited each by itself: while of one something is missing, another goes on, and one begins when it answers first', async () => {
  const { look, recordOne, answer } = await another()
  await recordOne('first')
  answer('messaging', () => ({ seqs: '{[1,3)}', newest: null }))
  await look(platform.sql)
  answer('directory', () => ({ seqs: '{[1,2)}', newest: null }))
  await look(platform.sql)
  await recordOne('second')
  await look(platform.sql)
  await platform.sql`update outbox_marks set at = now() - interval '1 hour'`
  await look(platform.sql)
  const audits = await platform.sql`select consumer, audited_seq::int, looks from event_audits order by consumer`
  expect(audits).toEqual([
    { consumer: 'directory-accounts', auditedSeq: 1, looks: 1 },
    // What is missing is not for these.
    { consumer: 'directory-members', auditedSeq: 2, looks: 0 },
    { consumer: 'directory-teams', auditedSeq: 2, looks: 0 },
    { consumer: 'messaging-accounts', auditedSeq: 2, looks: 0 },
  ])
})
