import { testService, type TestService } from '@app/test/service.ts'
import type { JetStreamManagerOptions, StreamInfo } from 'nats'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { openDatabase, type Sql } from '../database/database.ts'
import { consumersOf, restoreStream } from './provision.ts'
import { redrive, refillLostStream } from './refill.ts'
import { interrupted } from '../testing/interrupted.ts'

let it: TestService
/** As a service's, with as much time for a statement as a test gives it. */
let sql: Sql
beforeAll(async () => {
  it = await testService('messaging')
  sql = openDatabase(it.databaseUrl, 'messaging', { max: 1 })
})
afterAll(async () => {
  await sql.end()
  await it.close()
})

const [old, young] = ['4 hours', '1 hour']
/** As long as a stream keeps events, and somewhat more. */
const [kept, over] = ['71 hours', '73 hours']

async function publishedBefore(age: string, count: number) {
  await it.sql`
    insert into outbox (id, subject, headers, payload, created_at, published_at)
    select ${age} || ':' || n, 'event.test.happened', '{}', convert_to(repeat('x', 500), 'UTF8'),
      now() - ${age}::interval, now()
    from generate_series(1, ${count}::int) n
  `
}

const waiting = async () => {
  const rows = await it.sql<{ age: string; count: number }[]>`
    select split_part(id, ':', 1) as age, count(*)::int from outbox where published_at is null group by 1
  `
  return Object.fromEntries(rows.map(({ age, count }) => [age, count]))
}

test('what a stream lost that is as old as before, but shorter, is published again, once', async () => {
  const { created } = await restoreStream(it.eventBus.nc, it.streamReplicas)
  await publishedBefore(young, 2)
  await publishedBefore(kept, 1)
  await publishedBefore(over, 1)
  expect(await refillLostStream(it)).toBe(created)
  expect(await waiting()).toEqual({})
  await it.sql`update relay_position set last_seq = last_seq + 1`
  await refillLostStream(it)
  expect(await waiting()).toEqual({ [young]: 2, [kept]: 1 })
  await it.sql`update outbox set published_at = now()`
  await refillLostStream(it)
  expect(await waiting()).toEqual({})
  await it.sql`truncate outbox`
})

/** As a leader with two other copies answers: each look at the stream gives the next of these, when they were heard and what it lacks. */
function copied(looks: { heardMs: number; lacking: number }[]) {
  const { nc } = it.eventBus
  async function jetstreamManager(options?: JetStreamManagerOptions) {
    const jsm = await nc.jetstreamManager(options)
    const info = jsm.streams.info.bind(jsm.streams)
    jsm.streams.info = async (name) => {
      const { heardMs, lacking } = looks.shift() ?? { heardMs: 500, lacking: 0 }
      const { state, ...found } = await info(name)
      const other = { current: true, offline: false, active: heardMs * 1e6, lag: 0 }
      const replicas = ['nats-2', 'nats-3'].map((copy) => ({ ...other, name: copy, observer: false, unknown: false }))
      const cluster = { name: 'messaging', leader: 'nats-1', replicas }
      return { ...found, state: { ...state, last_seq: state.last_seq - lacking }, cluster } as StreamInfo
    }
    return jsm
  }
  const like = new Proxy(nc, {
    get: (_, name) => (name === 'jetstreamManager' ? jetstreamManager : Reflect.get(nc, name)),
  })
  return { ...it, eventBus: { ...it.eventBus, nc: like } }
}

test('in a cluster a stream counts as shorter only if it stays so, and if most copies are with who tells it', async () => {
  const created = await refillLostStream(it)
  await publishedBefore(young, 2)
  // Of those that were never heard of a nats-server says 0.
  const cutOff = [6_000, 0].map((heardMs) => ({ heardMs, lacking: 1 }))
  const elected = { heardMs: 500, lacking: 1 }
  const looks = [...cutOff.map((one) => [one, one]), [elected, { heardMs: 500, lacking: 0 }]]
  const found = await Promise.all(looks.map((each) => refillLostStream(copied(each))))
  expect(found).toEqual([undefined, undefined, created])
  expect(await waiting()).toEqual({})
  expect(await refillLostStream(copied([elected, elected]))).toBe(created)
  expect(await waiting()).toEqual({ [young]: 2 })
  await it.sql`truncate outbox`
})

test('what another instance publishes while the stream is looked at is not taken for lost', async () => {
  await publishedBefore(young, 2)
  await refillLostStream(it)
  await refillLostStream(
    interrupted(it, ({ state }) => it.sql`update relay_position set last_seq = ${state.last_seq + 1}`),
  )
  expect(await waiting()).toEqual({})
  await it.sql`truncate outbox`
})

test('what a stream lost is published again though another instance has remembered a place in it since it was looked at', async () => {
  await publishedBefore(young, 2)
  await it.sql`update relay_position set stream_created = 'before'`
  let looks = 0
  const remembering = interrupted(it, async () => {
    if (++looks === 1) await it.sql`update relay_position set last_seq = last_seq + 1`
  })
  expect(await refillLostStream(remembering)).toBe((await restoreStream(it.eventBus.nc, it.streamReplicas)).created)
  expect(await waiting()).toEqual({ [young]: 2 })
  await it.sql`truncate outbox`
})

test.each([
  // By now it may be as long as the one that is remembered.
  ['made anew', "stream_created = 'before', last_seq = 0"],
  ['shorter', 'last_seq = last_seq + 1000'],
])('of two instances that find at once that the stream is %s, one publishes again', async (_, before) => {
  await publishedBefore(young, 2)
  await it.sql.unsafe(`update relay_position set ${before}`)
  const warned = vi.spyOn(it.log, 'warn')
  onTestFinished(() => warned.mockRestore())
  await Promise.all([refillLostStream(it), refillLostStream(it)])
  expect(warned.mock.calls.filter(([, words]) => words === 'events wait to be published again')).toHaveLength(1)
  expect(await waiting()).toEqual({ [young]: 2 })
  await it.sql`truncate outbox`
})

test('behind what all consumers have handled more than one statement takes waits again, and nothing older than a stream keeps', async () => {
  const { sql: admin } = it
  await admin`truncate outbox`
  await publishedBefore(kept, 1)
  const [{ floor } = { floor: 0 }] = await admin<{ floor: number }[]>`select max(seq)::int as floor from outbox`
  await publishedBefore(over, 1)
  await publishedBefore(young, 45_000)
  await refillLostStream(it)
  const names = consumersOf('messaging').map(({ name }) => name)
  await admin`
    insert into handled_floors (consumer, seq) select name, ${floor} from unnest(${names}::text[]) name
    on conflict (consumer) do update set seq = excluded.seq
  `
  await admin`update relay_position set last_seq = last_seq + 1000`
  await refillLostStream(it)
  expect(await waiting()).toEqual({ [young]: 45_000 })
  await admin`truncate outbox, handled_floors`
})

test('more events than one statement could take wait again, those of before do not', async () => {
  await publishedBefore(old, 20_000)
  await publishedBefore(young, 100_000)
  const since = new Date(Date.now() - 2 * 3_600_000)
  const startedAt = performance.now()
  const undone = it.sql.begin(async (tx) => {
    await tx`update outbox set published_at = null where created_at >= ${since}`
    throw new Error('undone')
  })
  await expect(undone).rejects.toThrow('undone')
  const atOnceMs = Math.round(performance.now() - startedAt)
  await sql.unsafe(`set statement_timeout = ${Math.round(atOnceMs / 2)}`)
  expect(await redrive({ ...it, sql }, since)).toBe(100_000)
  expect(await waiting()).toEqual({ [young]: 100_000 })
})

test('again, it finds nothing that does not wait', async () => {
  expect(await redrive({ ...it, sql }, new Date(Date.now() - 2 * 3_600_000))).toBe(0)
})
