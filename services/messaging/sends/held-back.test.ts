import { newId } from '@app/shared/values/ids.ts'
import { untilSomebodyWaits } from '@app/test/lock-waits.ts'
import { until } from '@app/test/until.ts'
import { beforeAll, expect, test } from 'vitest'
import { accept, phoneNumberId, refuse, type TestMessaging } from '../testing/app.ts'
import { messagingThatSends } from '../testing/sending.ts'
import { newSend } from '../testing/sends.ts'
import { insertSends } from './insert-sends.ts'
import { burstMs, leaseMs } from './pace.ts'

const sending = messagingThatSends()
const { eventually, passTime } = sending
let app: TestMessaging
beforeAll(() => void ({ app } = sending))

test('a suspension ends what is queued, and none of it reaches the platform', async () => {
  const to = '+15550100005'
  app.respondWith(refuse(131000, 500))
  const { id } = await app.send('waiting', { to })
  await until(async () => expect(await app.sql`select 1 from send_attempts where message_id = ${id}`).toHaveLength(1))
  const behind = await app.send('behind', { to })
  const calls = app.calls.length
  await app.setSender({ refusal: 'customer_suspended' })
  await eventually(id, 'failed')
  await eventually(behind.id, 'failed')
  expect(app.calls).toHaveLength(calls)
  const [row] = await app.sql`select error from messages where id = ${behind.id}`
  expect(row?.['error']).toMatchObject({ code: 'customer_suspended', provider_code: null })
  await expect(app.send('more', { to })).rejects.toMatchObject({ failure: 'customer_suspended' })
  await app.setSender({ refusal: null })
})

test('a suspension that comes while the platform is asked ends a send that would be tried again', async () => {
  const answers: (() => void)[] = []
  // The platform's maintenance: a minute until the next try.
  app.respondWith((...call) => answers.push(() => refuse(131057, 500)(...call)))
  const { id } = await app.send('under way', { to: '+15550100025' })
  await until(async () => expect(app.calls.some((call) => call.messageId === id)).toBe(true))
  await app.setSender({ refusal: 'customer_suspended' })
  for (const answer of answers) answer()
  await eventually(id, 'failed')
  const [row] = await app.sql`select error from messages where id = ${id}`
  expect(row?.['error']).toMatchObject({ code: 'customer_suspended' })
  await app.setSender({ refusal: null })
})

test('the suspension of another number of the organization does not end the wait of a send that is tried again', async () => {
  const other = '100000000000001'
  await app.setSender({ phone_number_id: other, refusal: 'customer_suspended' })
  app.respondWith(refuse(131057, 500))
  const { id, conversationId: lane } = await app.send('waits a minute', { to: '+15550100026' })
  await until(async () => {
    const [row] = await app.sql`
      select extract(epoch from due_at - now())::float8 as wait_s, held_until > now() as is_held from send_lanes where id = ${lane}
    `
    expect(row).toMatchObject({ isHeld: false })
    expect(row?.['waitS']).toBeGreaterThan(20)
  })
  expect(app.calls.filter(({ messageId }) => messageId === id)).toHaveLength(1)
  app.respondWith(accept)
  await passTime(id, lane)
  await eventually(id, 'sent')
  await app.setSender({ phone_number_id: other, refusal: null })
})

test('a number that may not send is refused before directory is asked, so that nothing is made', async () => {
  await app.setSender({ refusal: 'account_not_connected' })
  const to = '+15550177001'
  app.closedWindows.add(to)
  await expect(app.send('no', { to })).rejects.toMatchObject({ failure: 'account_not_connected' })
  await app.setSender({ refusal: null })
})

test('a month that is used up refuses sends, whatever number they come from, until the quota is raised', async () => {
  const used = { [app.number.organizationId]: 3, [newId('org')]: 100 }
  for (const [organization, count] of Object.entries(used)) {
    await app.sql`
      insert into monthly_sends select ${organization}, date_trunc('month', now() at time zone 'UTC') - age, ${count}::int
      from unnest('{0 months,1 month}'::interval[]) age
    `
  }
  const quota = (messages_per_month: number | null) =>
    app.setSender({ settings: { ...app.settings, messages_per_month } })
  await quota(5)
  const sends = Array.from({ length: 8 }, (_, n) => app.send('counted', { to: `+155501601${n}0` }))
  const outcomes = await Promise.allSettled(sends)
  expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(2)
  for (const outcome of outcomes) {
    if (outcome.status === 'rejected')
      expect(outcome.reason).toMatchObject({ failure: 'quota_used_up', code: 'invalid_request' })
  }
  await quota(6)
  await app.send('one more', { to: '+15550160200' })
  await expect(app.send('not one more', { to: '+15550160400' })).rejects.toMatchObject({ failure: 'quota_used_up' })
  expect(app.opened).not.toContain('+15550160400')
  await quota(null)
  await app.send('as many as it likes', { to: '+15550160300' })
})

test('an older state of the account changes nothing', async () => {
  await app.setSender({ refusal: 'account_restricted', version: 0 })
  const { id } = await app.send('fine', { to: '+15550100006' })
  await eventually(id, 'sent')
})

test('the pair limit is kept: 45 messages at once to a recipient, then one every 6 s', async () => {
  const to = '+15550100007'
  const sends = await Promise.all(Array.from({ length: 47 }, (_, n) => app.send(`burst ${n}`, { to })))
  await until(async () => expect(app.calls.filter((call) => call.to === to)).toHaveLength(45))
  await until(async () => {
    const [lane] = await app.sql<{ waitMs: number }[]>`
      select extract(epoch from due_at - now())::float8 * 1000 as wait_ms from send_lanes
      where id = ${sends[0]?.conversationId ?? ''}
    `
    expect(lane?.waitMs).toBeGreaterThan(1_000)
    expect(lane?.waitMs).toBeLessThan(7_500)
  })
  expect(app.calls.filter((call) => call.to === to)).toHaveLength(45)
})

test('a refusal is taken over only when the calls that had begun are done, and none begins afterwards', async () => {
  const answers: (() => void)[] = []
  app.respondWith((call, response, n) => answers.push(() => accept(call, response, n)))
  const recipients = Array.from({ length: 20 }, (_, n) => `+1555012${String(n).padStart(4, '0')}`)
  await Promise.all(recipients.map((to) => app.send('under way', { to })))
  await until(async () => expect(answers.length).toBeGreaterThan(0))
  const number = app.number.phoneNumberId
  const open = () => app.sql`select seq from sends where phone_number_id = ${number} and begun_at is not null`
  let isDone = false
  const refused = app.putSender({ refusal: 'customer_suspended' }).then(() => (isDone = true))
  await until(async () =>
    expect(await app.sql`select from senders where phone_number_id = ${number} and refusal is not null`).toHaveLength(
      1,
    ),
  )
  // Each that was begun by then is on its way to the platform.
  await until(async () => expect(await open()).toHaveLength(answers.length))
  expect(isDone).toBe(false)
  const begun = answers.length
  for (const answer of answers) answer()
  await refused
  expect(answers).toHaveLength(begun)
  expect(await open()).toEqual([])
  await app.setSender({ refusal: null })
})

test('a number whose messages are too many rests once, however many of them were refused, and no other one with it', async () => {
  const other = '100000000000002'
  await app.setSender({ phone_number_id: other })
  const answers: (() => void)[] = []
  app.respondWith((...call) => answers.push(() => refuse(131048)(...call)))
  const recipients = Array.from({ length: 10 }, (_, n) => `+15550180${n}00`)
  const sends = await Promise.all(recipients.map((to) => app.send('too many', { to })))
  // What an earlier test has left may be called for beside them.
  await until(async () => expect(app.calls.filter(({ to }) => recipients.includes(to))).toHaveLength(recipients.length))
  for (const answer of answers) answer()
  for (const { id } of sends) await eventually(id, 'failed')
  const [row] = await app.sql<{ restMs: number }[]>`
    select extract(epoch from tat - now())::float8 * 1000 as rest_ms from pace where grp = ${app.number.phoneNumberId}
  `
  const resting = await app.sql`select grp from pace where grp in (${other}, ${phoneNumberId}) and tat > now()`
  await app.sql`update pace set tat = now()`
  expect(resting).toEqual([{ grp: phoneNumberId }])
  expect(row?.restMs).toBeGreaterThan(5_000)
  expect(row?.restMs).toBeLessThanOrEqual(10_000)
})

test('a number that rests is locked before the conversations, as by who accepts sends: neither waits for the other', async () => {
  const { sql } = app
  const refused = Promise.withResolvers<() => void>()
  // What tests before this one left is tried again meanwhile.
  app.respondWith((...asked) =>
    asked[0].text === 'too many' ? refused.resolve(() => refuse(130429)(...asked)) : accept(...asked),
  )
  const { id, conversationId } = await app.send('too many', { to: '+15550100131' })
  const answer = await refused.promise
  await sql.begin(async (tx) => {
    await tx`select from pace where grp = ${phoneNumberId} for update`
    answer()
    await untilSomebodyWaits(sql)
    await tx`select from send_lanes where id = ${conversationId} for update nowait`
  })
  await until(async () => expect(await app.sql`select 1 from send_attempts where message_id = ${id}`).toHaveLength(1))
  app.respondWith(accept)
  await sql`update pace set tat = now()`
  await passTime(id, conversationId)
  await eventually(id, 'sent')
})

test('a number that another organization has now sends nothing more for the one that had it, though nobody told that it was detached', async () => {
  const to = '+15550180078'
  app.respondWith(refuse(131000, 500))
  const { id, conversationId } = await app.send('waiting', { to })
  await until(async () => expect(await app.sql`select 1 from send_attempts where message_id = ${id}`).toHaveLength(1))
  const calls = app.calls.length
  await app.setSender({ organization_id: newId('org') })
  await passTime(id, conversationId)
  await eventually(id, 'failed')
  expect(app.calls).toHaveLength(calls)
  await expect(app.send('more', { to })).rejects.toMatchObject({ failure: 'account_not_connected' })
  await app.setSender({})
})

test('who has a number now waits for nothing that another organization had queued there', async () => {
  const { sql } = app
  const before = newId('org')
  await app.setSender({ organization_id: before })
  await sql.begin(async (tx) => {
    // Nothing is claimed meanwhile.
    await tx`select from pace where grp = ${phoneNumberId} for update`
    const queued = Array.from({ length: 500 }, (_, n) =>
      newSend('late', `+1555019${1000 + n}`, { organization_id: before }),
    )
    await insertSends(sql, queued, { mayBegin: [], leaseMs, burstMs, dueFrom: null, holder: 1 })
  })
  await app.setSender({})
  const { id } = await app.send('mine', { to: '+15550100777' })
  await eventually(id, 'sent')
  const [rest] = await sql<{ count: number }[]>`select count(*)::int from sends where organization_id = ${before}`
  expect(rest?.count).toBeGreaterThan(300)
  await sql`delete from sends where organization_id = ${before}`
})
