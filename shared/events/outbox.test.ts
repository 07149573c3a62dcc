import { createTestDatabase, type TestDatabase } from '@app/test/database.ts'
import { leaveNoRoom } from '@app/test/no-room.ts'
import { until } from '@app/test/until.ts'
import { afterAll, afterEach, beforeAll, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { isDatabaseAway } from '../database/database.ts'
import { ownSession } from '../database/own-session.ts'
import { keepPartitions } from '../database/partitions.ts'
import { openOutbox, type Outbox, type Published, type WaitingEvent } from './outbox.ts'

let database: TestDatabase
let one: Outbox
let other: Outbox

beforeAll(async () => {
  database = await createTestDatabase('messaging')
  await database.sql`insert into relay_position (stream_created, last_seq) values ('now', 0)`
})
afterAll(() => database.drop())
beforeEach(async () => {
  const { sql } = database
  await sql`truncate outbox`
  await sql`insert into outbox (id, subject, headers, payload) select n::text, 'event.a', '{}', 'é' from generate_series(1, 6) n`
  one = openOutbox({ sql, name: 'messaging' })
  other = openOutbox({ sql, name: 'messaging' })
})
afterEach(() => Promise.all([one.close(), other.close()]))

const idsOf = (events: WaitingEvent[]) => events.map(({ id }) => id)
const all = (events: WaitingEvent[]): Published => ({
  published: events.map(({ seq }) => seq),
  refused: [],
  last: { seq: events.length, subject: 'event.test.happened' },
})

/** What the next turn would publish. */
async function waiting(outbox = other) {
  const seen: string[] = []
  await outbox.turn(256, (events) => {
    seen.push(...idsOf(events))
    return Promise.resolve({ published: [], refused: [], last: undefined })
  })
  return seen
}

/** A turn of the first instance that publishes all, under way until it is told to go on. */
async function turnUnderWay() {
  const { promise: goOn, resolve } = Promise.withResolvers<void>()
  const begun = Promise.withResolvers<void>()
  const turn = one.turn(256, async (events) => {
    begun.resolve()
    await goOn
    return all(events)
  })
  await Promise.race([begun.promise, turn])
  return () => {
    resolve()
    return turn
  }
}

/** What is answered by a turn whose session is gone: who has not noticed it yet fails with it, and records nothing either. */
const lost = (turn: Promise<number | null>) =>
  turn.catch((err: unknown) => {
    if (isDatabaseAway(err)) return null
    throw err
  })

test('events come in their order, a turn at a time; what was published or refused comes no more, the rest again', async () => {
  const first = await one.turn(4, ([a, b, c, d]) => {
    const [one, two, three] = [a, b, c].map((event) => event?.seq ?? '')
    expect(d).toMatchObject({ id: '4', subject: 'event.a', headers: '{}', payload: 'é' })
    return Promise.resolve({
      published: [one ?? '', three ?? ''],
      refused: [{ seq: two ?? '', why: 'no' }],
      last: { seq: 7, subject: 'event.test.happened' },
    })
  })
  expect(first).toBe(4)
  expect(await waiting()).toEqual(['4', '5', '6'])
  expect(await database.sql`select last_seq from relay_position`).toEqual([{ lastSeq: '7' }])
  expect(await database.sql`select id, refused from outbox where refused is not null`).toEqual([
    { id: '2', refused: 'no' },
  ])
})

test('the place of an event that was there before is not remembered as the newest', async () => {
  const publish = (seq: number, subject: string) =>
    one.turn(1, ([event]) => Promise.resolve({ published: [event?.seq ?? ''], refused: [], last: { seq, subject } }))
  await publish(1_000, 'event.test.newest')
  await publish(999, 'event.test.before')
  expect(await database.sql`select last_seq, last_subject, last_subject_seq from relay_position`).toEqual([
    { lastSeq: '1000', lastSubject: 'event.test.newest', lastSubjectSeq: '1000' },
  ])
})

test('while one instance is at it the other gets nothing, and then what is left', async () => {
  const finish = await turnUnderWay()
  const publish = vi.fn<(events: WaitingEvent[]) => Promise<Published>>()
  expect(await other.turn(256, publish)).toBeNull()
  expect(publish).not.toHaveBeenCalled()
  expect(await finish()).toBe(6)
  expect(await other.turn(256, publish)).toBe(0)
})

test('an instance of another service that shares the database has its turn meanwhile', async () => {
  const finish = await turnUnderWay()
  const stranger = openOutbox({ sql: database.sql, name: 'platform' })
  onTestFinished(() => stranger.close())
  expect(await waiting(stranger)).toHaveLength(6)
  expect(await finish()).toBe(6)
})

test('who lost the connection records nothing: another may have to publish the same again', async () => {
  const finish = await turnUnderWay()
  await database.sql`
    select pg_terminate_backend(pid, 1000) from pg_stat_activity
    where datname = current_database() and state = 'idle in transaction'
  `
  expect(await waiting()).toHaveLength(6)
  expect(await lost(finish())).toBeNull()
  expect(await waiting()).toHaveLength(6)
  expect(await one.turn(256, (events) => Promise.resolve(all(events)))).toBe(6)
  expect(await waiting()).toEqual([])
})

test('who hangs loses the turn as soon as the sessions of the service end that leave a transaction idle: after 10 s', async () => {
  const { connection } = database.sql.options
  expect(connection).toMatchObject({ idle_in_transaction_session_timeout: 10_000 })
  const hasty = ownSession(database.sql, { idle_in_transaction_session_timeout: '300' })
  onTestFinished(() => hasty.end())
  await one.close()
  one = openOutbox({ sql: hasty, name: 'messaging' })
  const finish = await until(turnUnderWay)
  await until(async () => expect(await waiting()).toHaveLength(6))
  expect(await lost(finish())).toBeNull()
  expect(await waiting()).toHaveLength(6)
})

test('events of two days come by their numbers and are recorded, each in its partition', async () => {
  const { sql } = database
  await keepPartitions(sql, { table: 'outbox', by: 'time', keepDays: 1 })
  await sql`
    insert into outbox (id, subject, headers, payload, created_at) values
      ('today', 'event.a', '{}', '', now()), ('yesterday', 'event.a', '{}', '', now() - interval '1 day')
  `
  const partitions = await sql`select distinct tableoid from outbox`
  expect(partitions).toHaveLength(2)
  expect(await one.turn(7, async (events) => all(events))).toBe(7)
  expect(await waiting()).toEqual(['yesterday'])
  expect(await one.turn(7, async (events) => all(events))).toBe(1)
  expect(await waiting()).toEqual([])
  expect(await sql`select from outbox where published_at is null`).toEqual([])
})

test('a turn that fails leaves all as it was', async () => {
  await expect(one.turn(256, () => Promise.reject(new Error('no bus')))).rejects.toThrow('no bus')
  expect(await waiting()).toHaveLength(6)
})

test('a relay that finds no room for its session gets that of one of the pool that rests', async () => {
  onTestFinished(await leaveNoRoom(database.sql, 5))
  await expect(one.isWaiting()).rejects.toThrow('too many connections')
  await until(() => one.isWaiting())
  await expect(waiting()).rejects.toThrow('too many connections')
  await until(async () => expect(await waiting()).toHaveLength(6))
})

test('once a look is dear it begins where all was settled; what was numbered before and is committed late comes with a look at all', async () => {
  const { sql } = database
  let ms = 1_000
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => (ms += 25))
  onTestFinished(() => clock.mockRestore())
  const [late] = await sql<{ seq: string }[]>`select min(seq) - 1 as seq from outbox`
  const add = (id: string, seq = sql`nextval('outbox_seq')`) =>
    sql`insert into outbox (seq, id, subject, headers, payload) values (${seq}, ${id}, 'event.a', '{}', '')`
  expect(await one.turn(256, (events) => Promise.resolve(all(events)))).toBe(6)
  ms += 10_000
  expect(await waiting(one)).toEqual([])
  await add('late', sql`${late?.seq ?? ''}::bigint`)
  expect(await one.isWaiting()).toBe(false)
  await add('new')
  expect(await one.isWaiting()).toBe(true)
  expect(await waiting(one)).toEqual(['new'])
  one.lookAtAll()
  expect(await waiting(one)).toEqual(['late', 'new'])
  expect(await waiting(one)).toEqual(['late', 'new'])
  ms += 10_000
  expect(await waiting(one)).toEqual(['late', 'new'])
})
