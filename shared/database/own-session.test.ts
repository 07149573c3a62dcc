import { createTestDatabase, type TestDatabase } from '@app/test/database.ts'
import { leaveNoRoom } from '@app/test/no-room.ts'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import type { Sql } from './database.ts'
import { makingRoom, ownSession } from './own-session.ts'

let database: TestDatabase
beforeEach(async () => {
  database = await createTestDatabase('messaging')
  onTestFinished(() => database.drop())
})

const ownOne = () => {
  const session = ownSession(database.sql)
  onTestFinished(() => session.end({ timeout: 1 }))
  return session
}

const pidOf = async (sql: Sql) => (await sql<{ pid: number }[]>`select pg_backend_pid() as pid`)[0]?.pid

/** How often it is tried until it succeeds. */
async function tries(work: () => Promise<unknown>) {
  for (let count = 1; count <= 5; count++) {
    const hasWorked = await makingRoom(database.sql, work).then(
      () => true,
      () => false,
    )
    if (hasWorked) return count
  }
  return Infinity
}

test('a session of its own that finds no room gets that of one of the pool that rests', async () => {
  await leaveNoRoom(database.sql, 3)
  const session = ownOne()
  await expect(session`select`).rejects.toThrow('too many connections')
  expect(await tries(() => session`select`)).toBe(2)
  expect(await pidOf(session)).not.toBe(await pidOf(database.sql))
})

test('the pool keeps its last session, whatever else finds no room', async () => {
  await leaveNoRoom(database.sql, 1)
  const pid = await pidOf(database.sql)
  const session = ownOne()
  expect(await tries(() => session`select`)).toBe(Infinity)
  expect(await pidOf(database.sql)).toBe(pid)
})

test('what fails otherwise costs the pool nothing', async () => {
  const pid = await pidOf(database.sql)
  await expect(makingRoom(database.sql, () => database.sql`select 1 / 0`)).rejects.toThrow('division by zero')
  expect(await pidOf(database.sql)).toBe(pid)
})
