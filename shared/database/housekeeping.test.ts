import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { createTestDatabase, type TestDatabase } from '@app/test/database.ts'
import { untilSomebodyWaits } from '@app/test/lock-waits.ts'
import { leaveNoRoom } from '@app/test/no-room.ts'
import { startHousekeeping, type Sweep } from './housekeeping.ts'
import { createLog } from '../service/log.ts'

const dayMs = 24 * 60 * 60 * 1000
let database: TestDatabase
let app: Parameters<typeof startHousekeeping>[0]

beforeAll(async () => {
  database = await createTestDatabase('platform')
  app = { name: 'platform', sql: database.sql, log: createLog('test', 'silent') }
  await database.sql`
    create table visits (at timestamptz(3) not null, page text) partition by range (at)
  `
  await database.sql`create table visits_default partition of visits default`
  for (const name of ['visits', 'visits_default']) await nameRows(name)
})
afterAll(() => database.drop())

beforeEach(() => database.sql`truncate handled_events`)

const nameOf = (table: string, atMs: number) =>
  `${table}_${new Date(atMs).toISOString().slice(0, 10).replaceAll('-', '')}`

async function partitionsOf(table: string) {
  const rows = await database.sql<{ name: string }[]>`
    select inhrelid::regclass::text as name from pg_inherits where inhparent = ${table}::regclass order by 1
  `
  return rows.map(({ name }) => name)
}

/** All tables of the tests are published, and a row of one without a key is deleted only where it has a name. */
const nameRows = (table: string) => database.sql`alter table ${database.sql(table)} replica identity full`

/** A partition of that many days ago. */
async function createOld(table: string, daysAgo: number) {
  const day = Math.floor(Date.now() / dayMs) - daysAgo
  const [from, to] = [day, day + 1].map((each) => new Date(each * dayMs).toISOString())
  const name = nameOf(table, day * dayMs)
  await database.sql.unsafe(`create table ${name} partition of ${table} for values from ('${from}') to ('${to}')`)
  await nameRows(name)
  return { name, from }
}

/** Holds the tables and their partitions as `pg_dump` does; answers how to end it. */
async function beginBackup() {
  const session = await database.admin.reserve()
  await session`begin`
  await session`lock table platform.visits, platform.outbox in access share mode`
  let ended: Promise<unknown> | undefined
  return () => (ended ??= session`rollback`.then(() => session.release()))
}

/** Starts, waits for the sweeps, and stops. */
async function keepHouse(sweep: Sweep = () => Promise.resolve(0)) {
  const { promise, resolve } = Promise.withResolvers<void>()
  const last: Sweep = () => {
    resolve()
    return Promise.resolve(0)
  }
  const house = await startHousekeeping(app, {
    partitions: [{ table: 'visits', by: 'time', keepDays: 2 }],
    sweeps: [sweep, last],
  })
  await promise
  await house.stop()
}

test('partitions of today are there when it resolves, and at once those of the week ahead, for the outbox too', async () => {
  const house = await startHousekeeping(app, { partitions: [{ table: 'visits', by: 'time', keepDays: 2 }] })
  const expectDays = async (from: number, to: number) => {
    for (const table of ['outbox', 'visits']) {
      const names = await partitionsOf(table)
      for (let day = from; day <= to; day++) expect(names).toContain(nameOf(table, Date.now() + day * dayMs))
    }
  }
  await expectDays(-1, 0)
  await house.stop()
  await expectDays(-1, 7)
})

test('a sweep that has no hour to wait is done with the others, until it finds nothing', async () => {
  const found = [3, 2, 0]
  const { promise, resolve } = Promise.withResolvers<void>()
  const minutely: Sweep = () => {
    const count = found.shift() ?? 0
    if (count === 0) resolve()
    return Promise.resolve(count)
  }
  const house = await startHousekeeping(app, { partitions: [], minutely: [minutely] })
  await promise
  await house.stop()
  expect(found).toEqual([])
})

test('a partition past its days is dropped', async () => {
  const { name } = await createOld('visits', 3)
  await keepHouse()
  expect(await partitionsOf('visits')).not.toContain(name)
})

test('a partition of the outbox past its days stays until all that waits in it is published', async () => {
  const { name: old, from } = await createOld('outbox', 9)
  await database.sql`
    insert into outbox (id, subject, headers, payload, created_at, published_at)
    values ('sent', 'event.test.happened', '{}', '{}', ${`${from}`}, now()), ('waits', 'event.test.happened', '{}', '{}', ${`${from}`}, null)
  `
  await database.sql`
    insert into outbox (id, subject, headers, payload, created_at, refused)
    values ('refused', 'event.test.happened', '{}', '{}', ${`${from}`}, 'it is too large')
  `
  await keepHouse()
  expect(await partitionsOf('outbox')).toContain(old)
  await database.sql`update outbox set published_at = now() where id = 'waits'`
  await keepHouse()
  expect(await partitionsOf('outbox')).not.toContain(old)
})

test('a partition of the outbox stays for longer than a stream keeps its events', async () => {
  const { name } = await createOld('outbox', 4)
  await keepHouse()
  expect(await partitionsOf('outbox')).toContain(name)
})

test('handled events are forgotten after six days, and none that the outbox has, from where it could be published again', async () => {
  const oldest = new Date((Math.floor(Date.now() / dayMs) - 4) * dayMs)
  await keepHouse()
  expect(await partitionsOf('outbox')).not.toContain(nameOf('outbox', oldest.getTime() - dayMs))
  await database.sql`
    insert into handled_events (consumer, event_id, handled_at)
    select 'c', 'old ' || n, now() - interval '145 hours' from generate_series(1, 6000) n
    union all select 'c', 'young', ${oldest}
  `
  await keepHouse()
  const left = await database.sql<{ eventId: string }[]>`select event_id from handled_events`
  expect(left.map(({ eventId }) => eventId)).toEqual(['young'])
})

test('notes of what was handled are forgotten after six days, and those of ten minutes are merged', async () => {
  await database.sql`
    insert into handled_ranges (consumer, source, seqs, first, last, at)
    select 'c', 'platform', int8multirange(int8range(n, n + 1)), n, n, now() - age
    from (values (1, interval '7 days'), (2, interval '5 days'), (3, interval '5 days')) v(n, age)
  `
  await keepHouse()
  expect(await database.sql`select first::int, last::int from handled_ranges`).toEqual([{ first: 2, last: 3 }])
})

test('events that failed for a while and were handled then are forgotten as well, those that are dead are not', async () => {
  await database.sql`
    insert into dead_events (consumer, event_id, subject, headers, payload, failures, dead, last_error, updated_at)
    select 'c', id, 'event.test.happened', '{}', '{}', 3, id = 'dead', 'no', now() - age
    from (values ('late', interval '7 days'), ('young', interval '5 days'), ('dead', interval '70 days')) v(id, age)
  `
  await keepHouse()
  const left = await database.sql<{ eventId: string }[]>`select event_id from dead_events order by event_id`
  expect(left.map(({ eventId }) => eventId)).toEqual(['dead', 'young'])
})

test('an event that fails for the last time just when its failures are forgotten is kept for the operator', async () => {
  await database.sql`truncate dead_events`
  await database.sql`
    insert into dead_events (consumer, event_id, subject, headers, payload, failures, last_error, updated_at)
    values ('c', 'again', 'event.test.happened', '{}', '{}', 7, 'no', now() - interval '7 days')
  `
  let keeping: Promise<void> | undefined
  await database.sql.begin(async (tx) => {
    await tx`update dead_events set failures = 8, dead = true, updated_at = now()`
    keeping = keepHouse()
    await untilSomebodyWaits(database.admin)
  })
  await keeping
  expect(await database.sql`select event_id, dead from dead_events`).toEqual([{ eventId: 'again', dead: true }])
})

test('keys of idempotency are forgotten after 24 hours by each service, which may have a database of its own', async () => {
  await database.sql`
    insert into idempotency.keys (organization_id, key, fingerprint, status, answer, created_at)
    select 'org_1', key, 'f', 201, '', now() - hours * interval '1 hour' from (values ('young', 23), ('old', 25)) k(key, hours)
  `
  await keepHouse()
  expect(await database.sql`delete from idempotency.keys returning key`).toEqual([{ key: 'young' }])
})

test('a sweep is repeated until it finds nothing', async () => {
  const found = [5000, 12, 0]
  await keepHouse(() => Promise.resolve(found.shift() ?? -1))
  expect(found).toEqual([])
})

test('a sweep with work for days keeps neither partitions nor the other sweeps waiting', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] })
  try {
    let rounds = 0
    let batches = 0
    const long: Sweep = () => sleep(5).then(() => ++batches)
    const other: Sweep = () => Promise.resolve(++rounds).then(() => 0)
    const visits = { table: 'visits', by: 'time', keepDays: 2 } as const
    const house = await startHousekeeping(app, { partitions: [visits], sweeps: [long, other] })
    // The first turn has looked at the partitions by then.
    await vi.waitFor(() => expect(batches).toBeGreaterThan(0), { timeout: 5_000 })
    const last = nameOf('visits', Date.now() + 7 * dayMs)
    await database.sql.unsafe(`drop table ${last}`)
    vi.advanceTimersByTime(60 * 60 * 1000)
    await vi.waitFor(() => expect(rounds).toBe(1), { timeout: 2_000 })
    await vi.waitFor(async () => expect(await partitionsOf('visits')).toContain(last), { timeout: 2_000 })
    vi.advanceTimersByTime(60 * 60 * 1000)
    await vi.waitFor(() => expect(rounds).toBe(2), { timeout: 2_000 })
    await house.stop()
  } finally {
    vi.useRealTimers()
  }
})

test('nor does it keep one waiting that has no hour to wait', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] })
  try {
    let batches = 0
    let minutes = 0
    const long: Sweep = () => sleep(5).then(() => ++batches)
    const minutely: Sweep = () => Promise.resolve(++minutes).then(() => 0)
    const house = await startHousekeeping(app, { partitions: [], sweeps: [long], minutely: [minutely] })
    await vi.waitFor(() => expect([batches > 0, minutes]).toEqual([true, 1]), { timeout: 5_000 })
    // The run before gives its lock back behind its last sweep.
    await vi.waitFor(() => {
      vi.advanceTimersByTime(60_000)
      expect(minutes).toBe(2)
    })
    await house.stop()
  } finally {
    vi.useRealTimers()
  }
})

test('what the database was away for is done within a minute', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] })
  try {
    const away = Object.assign(new Error('the database starts up'), { code: '57P03' })
    const found = [away, 0]
    const sweep: Sweep = () => {
      const next = found.shift()
      return typeof next === 'number' ? Promise.resolve(next) : Promise.reject(next ?? away)
    }
    const house = await startHousekeeping(app, { partitions: [], sweeps: [sweep] })
    await vi.waitFor(() => expect(found).toEqual([0]), { timeout: 5_000 })
    await vi.waitFor(() => {
      vi.advanceTimersByTime(60_000)
      expect(found).toEqual([])
    })
    await house.stop()
  } finally {
    vi.useRealTimers()
  }
})

test('a backup that holds the tables for hours keeps no instance from starting, nor from its sweeps; what it held up is done an hour later', async () => {
  const visits = { table: 'visits', by: 'time', keepDays: 2 } as const
  await (await startHousekeeping(app, { partitions: [visits] })).stop()
  const last = nameOf('visits', Date.now() + 7 * dayMs)
  await database.sql.unsafe(`drop table ${last}`)
  const old = [await createOld('visits', 3), await createOld('outbox', 5)]
  const endBackup = await beginBackup()
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] })
  try {
    let swept = 0
    const sweep: Sweep = () => Promise.resolve(++swept).then(() => 0)
    const starting = startHousekeeping(app, { partitions: [visits], sweeps: [sweep] })
    expect(await Promise.race([starting.then(() => true), sleep(3_000, false)])).toBe(true)
    const house = await starting
    await vi.waitFor(() => expect(swept).toBe(1), { timeout: 8_000 })
    await endBackup()
    vi.advanceTimersByTime(59 * 60 * 1000)
    await vi.waitFor(
      () => {
        vi.advanceTimersByTime(60_000)
        expect(swept).toBe(2)
      },
      { timeout: 8_000 },
    )
    await house.stop()
    const names = [...(await partitionsOf('visits')), ...(await partitionsOf('outbox'))]
    expect(names).toContain(last)
    for (const { name } of old) expect(names).not.toContain(name)
  } finally {
    vi.useRealTimers()
    await endBackup()
  }
})

test('an instance starts only when the partitions of today are there, whoever holds the table', async () => {
  const visits = { table: 'visits', by: 'time', keepDays: 2 } as const
  await (await startHousekeeping(app, { partitions: [visits] })).stop()
  const today = nameOf('visits', Date.now())
  await database.sql.unsafe(`drop table ${today}`)
  const endBackup = await beginBackup()
  let resolved = false
  const starting = startHousekeeping(app, { partitions: [visits] }).finally(() => {
    resolved = true
  })
  await database.sql`select pg_sleep(1.4)`
  expect(resolved).toBe(false)
  await endBackup()
  const house = await starting
  expect(await partitionsOf('visits')).toContain(today)
  await house.stop()
})

test('a sweep that fails does not keep the next from its work', async () => {
  await keepHouse(() => Promise.reject(new Error('broken')))
})

test('nor does one whose statements take too long', async () => {
  let done = 0
  const slow: Sweep = (sql) =>
    sql.begin(async (tx) => {
      await tx`set local statement_timeout = 20`
      return (await tx`select pg_sleep(1)`).length
    })
  const next: Sweep = () => Promise.resolve(++done).then(() => 0)
  const house = await startHousekeeping(app, { partitions: [], minutely: [slow, next] })
  await vi.waitFor(() => expect(done).toBe(1), { timeout: 2_000 })
  await house.stop()
})

test('an instance that starts while another is at it waits, and finds the partitions made', async () => {
  const other = await database.sql.reserve()
  await other`select pg_advisory_lock(hashtext('housekeeping platform partitions'))`
  let resolved = false
  const starting = startHousekeeping(app, { partitions: [] }).finally(() => {
    resolved = true
  })
  await database.sql`select pg_sleep(0.4)`
  expect(resolved).toBe(false)
  await other`select pg_advisory_unlock(hashtext('housekeeping platform partitions'))`
  other.release()
  await (await starting).stop()
})

test('an instance starts while another one sweeps, however long that takes', async () => {
  const { promise: sweeping, resolve: begun } = Promise.withResolvers<void>()
  const { promise: end, resolve: goOn } = Promise.withResolvers<void>()
  const longSweep: Sweep = async () => {
    begun()
    await end
    return 0
  }
  const first = await startHousekeeping(app, { partitions: [], sweeps: [longSweep] })
  await sweeping
  const starting = startHousekeeping(app, { partitions: [] })
  const started = await Promise.race([starting.then(() => true), sleep(5_000, false)])
  goOn()
  await Promise.all([first.stop(), (await starting).stop()])
  expect(started).toBe(true)
})

test('an instance that loses the session of its lock goes on, and again the next time', async () => {
  const endOthers = () =>
    database.admin`
    select pg_terminate_backend(pid) from pg_locks
    where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())
  `.then(({ count }) => count)
  const counts: number[] = []
  for (let n = 0; n < 2; n++)
    await keepHouse(async () => {
      if (counts.length === n) return counts.push(await endOthers())
      return 0
    })
  expect(counts).toEqual([1, 1])
})

test('a service starts though Postgres has no room for a session beside those of its pool', async () => {
  onTestFinished(await leaveNoRoom(database.sql, 3))
  const house = await startHousekeeping(app, { partitions: [{ table: 'visits', by: 'time', keepDays: 7 }] })
  await house.stop()
})
