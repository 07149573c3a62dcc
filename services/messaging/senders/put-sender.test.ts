import { randomBytes } from 'node:crypto'
import { openDatabase } from '@app/shared/database/database.ts'
import { newId } from '@app/shared/values/ids.ts'
import { sealToken, unsealToken } from '@app/shared/secrets/account-token.ts'
import { type Account, newAccountState } from '@app/test/account-state.ts'
import { createTestDatabase, type TestDatabase } from '@app/test/database.ts'
import { untilSomebodyWaits } from '@app/test/lock-waits.ts'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import type { App } from '../app.ts'
import { finishSender, isBegun, storeSender } from './put-sender.ts'
import { laneBatch, leftGroup } from './take-over-lanes.ts'

const old = { current: 'k1', byId: new Map([['k1', randomBytes(32)]]) }
const keys = { current: 'k2', byId: new Map([['k2', randomBytes(32)], ...old.byId]) }
let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase('messaging')
})
afterAll(() => database.drop())

/** What is left to do once a state is stored. */
function finish(state: Account, moved = 0) {
  const mailbox = { wake: () => {} }
  const { sql } = database
  return finishSender(
    { sql, log: {}, dispatcher: mailbox, callbacks: mailbox, copier: mailbox } as unknown as App,
    state,
    moved,
  )
}

test('a token that an older key sealed is stored under the current one, so that an event from before a rotation brings no old key back', async () => {
  const accountId = newId('acc')
  const state = newAccountState({ account_id: accountId, sealed_token: sealToken(old, 'token', accountId) })
  await database.sql.begin((tx) => storeSender(tx, keys, state))
  const [row] = await database.sql<{ sealedToken: string }[]>`select sealed_token from senders`
  expect(row?.sealedToken).toMatch(/^k2\./)
  expect(unsealToken(keys, row?.sealedToken ?? '', accountId)).toBe('token')
})

test('a number has the pace that the platform takes from it, and keeps it when that is not told', async () => {
  const state = newAccountState()
  const paceOf = async (changes: object) => {
    await database.sql.begin((tx) => storeSender(tx, keys, { ...state, version: ++state.version, ...changes }))
    const [row] = await database.sql`select interval_ms from pace where grp = ${state.phone_number_id}`
    return 1_000 / Number(row?.['intervalMs'])
  }
  expect(await paceOf({})).toBe(80)
  expect(await paceOf({ messages_per_second: 20 })).toBe(20)
  expect(await paceOf({})).toBe(20)
  expect(await paceOf({ messages_per_second: 1_000 })).toBe(1_000)
  expect(await paceOf({ messages_per_second: null })).toBe(80)
  // It may be another organization's by now.
  expect(await paceOf({ attached: false, messages_per_second: 20 })).toBe(80)
})

test('an account that is made anew for a number counts from its first version', async () => {
  const before = newAccountState({ version: 5 })
  const { organization_id, phone_number_id } = before
  const anew = newAccountState({ organization_id, phone_number_id, account_id: newId('acc'), version: 1 })
  for (const state of [before, anew]) await database.sql.begin((tx) => storeSender(tx, keys, state))
  const rows = await database.sql`select account_id from senders where phone_number_id = ${phone_number_id}`
  expect(rows).toEqual([{ accountId: anew.account_id }])
})

test('what is told late of an organization that had the number takes it from nobody who connected it since', async () => {
  const { sql } = database
  const store = (state: Account) => sql.begin((tx) => storeSender(tx, keys, state))
  const before = newAccountState({ attached_at: '2026-01-01T00:00:00.000Z' })
  const { phone_number_id } = before
  const now = newAccountState({ phone_number_id, attached_at: '2026-01-02T00:00:00.000Z' })
  const owners = () => sql`
    select organization_id from senders
    where phone_number_id = ${phone_number_id} and attached and refusal is null
      and organization_id = (select open_for from pace where grp = ${phone_number_id})
  `
  await store(before)
  await store(now)
  await store({ ...before, version: 2, name: 'Renamed' })
  expect(await owners()).toEqual([{ organizationId: now.organization_id }])
  expect(await sql`select refusal from senders where name = 'Renamed'`).toEqual([{ refusal: 'account_not_connected' }])
  await store({ ...before, version: 3, attached: false, refusal: 'account_not_connected' })
  expect(await owners()).toEqual([{ organizationId: now.organization_id }])
  await store({ ...before, version: 4, attached_at: '2026-01-03T00:00:00.000Z' })
  expect(await owners()).toEqual([{ organizationId: before.organization_id }])
})

test('who connects a number takes no other one from anybody', async () => {
  const { sql } = database
  const [other, now] = [newAccountState(), newAccountState()]
  for (const state of [other, now]) await sql.begin((tx) => storeSender(tx, keys, state))
  const rows = await sql`
    select attached, refusal from senders where organization_id = ${other.organization_id}
  `
  expect(rows).toEqual([{ attached: true, refusal: null }])
})

test('of two versions of a number that are told at once the newer one stays', async () => {
  const { sql } = database
  const state = newAccountState()
  const store = (version: number) => sql.begin((tx) => storeSender(tx, keys, { ...state, version, name: `${version}` }))
  await store(1)
  const { older } = await sql.begin(async (tx) => {
    await storeSender(tx, keys, { ...state, version: 3, name: '3' })
    const older = store(2)
    await untilSomebodyWaits(sql)
    return { older }
  })
  await older
  const rows = await sql`select version::int, name from senders where phone_number_id = ${state.phone_number_id}`
  expect(rows).toEqual([{ version: 3, name: '3' }])
})

test('what is told of an organization that had the number before leaves the sends of the one that has it in their waits', async () => {
  const { sql } = database
  const now = newAccountState()
  const before = newAccountState({
    phone_number_id: now.phone_number_id,
    attached: false,
    refusal: 'account_not_connected',
  })
  const [own, other] = [newId('cnv'), newId('cnv')]
  for (const [state, lane] of [
    [before, own],
    [now, other],
  ] as const) {
    await sql.begin((tx) => storeSender(tx, keys, state))
    await sql`
      insert into sends (organization_id, phone_number_id, message_id, lane, expires_at)
      values (${state.organization_id}, ${now.phone_number_id}, ${newId('msg')}, ${lane}, now() + interval '1 day')
    `
    await sql`
      insert into send_lanes (id, grp, due_at) values (${lane}, ${now.phone_number_id}, now() + interval '1 hour')
    `
  }
  await sql.begin((tx) => storeSender(tx, keys, { ...before, version: before.version + 1 }))
  const due = await sql<{ id: string }[]>`
    select id from send_lanes where id in (${own}, ${other}) and due_at <= now()
  `
  expect(due.map(({ id }) => id)).toEqual([own])
})

test('a refusal waits for calls of its own organization alone', async () => {
  const { sql } = database
  const [own, other, phone, lane] = [newId('org'), newId('org'), newId('acc'), newId('cnv')]
  await sql`
    insert into sends (organization_id, phone_number_id, message_id, lane, begun_at, expires_at)
    values (${other}, ${phone}, ${newId('msg')}, ${lane}, now(), now() + interval '1 day')
  `
  await sql`
    insert into send_lanes (id, grp, due_at, held_until) values (${lane}, ${phone}, now(), now() + interval '1 minute')
  `
  expect(await isBegun(sql, { organizationId: own, phoneNumberId: phone })).toBe(false)
  expect(await isBegun(sql, { organizationId: other, phoneNumberId: phone })).toBe(true)
})

test('what others have queued at a number ends beside what its new owner sends; who has it again has its own back', async () => {
  const { sql } = database
  const before = newAccountState()
  const now = newAccountState({ phone_number_id: before.phone_number_id })
  const store = (state: Account) => sql.begin((tx) => storeSender(tx, keys, { ...state, version: ++before.version }))
  const groups = () => sql<{ grp: string; count: number; paced: boolean }[]>`
    select l.grp, count(*)::int, bool_and(exists (select from pace p where p.grp = l.grp)) as paced
    from send_lanes l where id in (select lane from sends where phone_number_id = ${before.phone_number_id}) group by 1
  `
  await store(before)
  await sql`
    with s as (
      insert into sends (organization_id, phone_number_id, message_id, lane, expires_at)
      select ${before.organization_id}, ${before.phone_number_id}, 'msg_' || n, 'cnv_of_' || n, now() + interval '1 day'
      from generate_series(1, ${laneBatch + 10}) n returning lane
    )
    insert into send_lanes (id, grp, due_at) select lane, ${before.phone_number_id}, now() from s
  `
  const left = leftGroup({ organizationId: before.organization_id, phoneNumberId: before.phone_number_id })
  expect(await store(now)).toBe(laneBatch)
  expect((await groups()).find(({ grp }) => grp === left)).toEqual({ grp: left, count: laneBatch, paced: true })
  await finish(now, laneBatch)
  expect(await groups()).toEqual([{ grp: left, count: laneBatch + 10, paced: true }])
  expect(await store(before)).toBe(laneBatch)
  expect((await groups()).find(({ grp }) => grp !== left)).toEqual({
    grp: before.phone_number_id,
    count: laneBatch,
    paced: true,
  })
})

test('however many sends of a number wait, its refusal is stored at once, and they end soon after', async () => {
  const { sql } = database
  const state = newAccountState()
  const store = (refusal: 'customer_suspended' | null) =>
    sql.begin((tx) => storeSender(tx, keys, { ...state, version: ++state.version, refusal }))
  await store(null)
  await sql`
    with s as (
      insert into sends (organization_id, phone_number_id, message_id, lane, expires_at)
      select ${state.organization_id}, ${state.phone_number_id}, 'msg_' || n, 'cnv_waits_' || n, now() + interval '1 day'
      from generate_series(1, ${laneBatch + 10}) n returning lane
    )
    insert into send_lanes (id, grp, due_at) select lane, ${state.phone_number_id}, now() + interval '1 hour' from s
  `
  const waiting = async () =>
    (await sql`select from send_lanes where grp = ${state.phone_number_id} and due_at > now()`).length
  await store('customer_suspended')
  expect(await waiting()).toBe(10)
  await finish({ ...state, refusal: 'customer_suspended' })
  expect(await waiting()).toBe(0)
})

test('the lanes of a number that is refused are taken in one order, as by whoever accepts its sends meanwhile', async () => {
  const { sql } = database
  const state = newAccountState()
  await sql.begin((tx) => storeSender(tx, keys, state))
  const left = leftGroup({ organizationId: state.organization_id, phoneNumberId: state.phone_number_id })
  // They lie in another order than that of their ids, and the first one was left when the number was another's.
  await sql`
    with s as (
      insert into sends (organization_id, phone_number_id, message_id, lane, expires_at)
      select ${state.organization_id}, ${state.phone_number_id}, 'msg_' || n, 'cnv_ordered_' || n, now() + interval '1 day'
      from generate_series(1, 8) n returning lane
    )
    insert into send_lanes (id, grp, due_at)
    select lane, case lane when 'cnv_ordered_1' then ${left} else ${state.phone_number_id} end, now() + interval '1 hour'
    from s order by lane desc
  `
  const one = openDatabase(database.url, 'messaging', { max: 1 })
  onTestFinished(() => one.end())
  const { refusing, free } = await sql.begin(async (tx) => {
    await tx`select from send_lanes where id = 'cnv_ordered_1' for update`
    const refused = one.begin(async (other) => {
      await other`set local enable_indexscan = off`
      await storeSender(other, keys, { ...state, version: state.version + 1, refusal: 'customer_suspended' })
    })
    await untilSomebodyWaits(sql)
    const others = await sql`select id from send_lanes where id like 'cnv_ordered_%' for update skip locked`
    return { refusing: refused, free: others.length }
  })
  await refusing
  expect(free).toBe(7)
  expect(await sql`select from send_lanes where id like 'cnv_ordered_%' and due_at > now()`).toHaveLength(0)
})
