import { setTimeout as sleep } from 'node:timers/promises'
import { accountReported } from '@app/shared/contracts/messaging.ts'
import { lockTimeoutMs } from '@app/shared/database/database.ts'
import { emit } from '@app/shared/events/events.ts'
import type { Loop } from '@app/shared/work/loop.ts'
import { provision } from '@app/shared/events/provision.ts'
import { lockWaits, untilSomebodyWaits } from '@app/test/lock-waits.ts'
import { sessionWithClock } from '@app/test/wrong-clock.ts'
import { until } from '@app/test/until.ts'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import {
  connect,
  knowNumber,
  newOrganization,
  newPhoneNumberId,
  startPeers,
  startTestApp,
  type TestApp,
} from '../testing/app.ts'
import { consumeAccountReports, settleReport } from './account-reports.ts'
import { mostChanging } from './changes-in-line.ts'
import type { DueAccount } from './due-account.ts'
import { pollAccount } from './poll-account.ts'
import { startPolling } from './poll-accounts.ts'
import { confirmAccount, takeOver } from './take-over.ts'

let it: TestApp
let peers: Awaited<ReturnType<typeof startPeers>>
let polling: Loop
let reports: ReturnType<typeof consumeAccountReports>
beforeAll(async () => {
  it = await startTestApp()
  await provision(it.app.nc)
  peers = await startPeers(it.app)
  polling = startPolling(it.app)
  reports = consumeAccountReports(it.app, polling)
})
afterAll(async () => {
  await Promise.all([reports.stop(), polling.stop()])
  await peers.stop()
  await it.close()
})
beforeEach(() => {
  it.upstream.asked.length = 0
})

async function connected(fields = {}) {
  const organizationId = await newOrganization(it.app)
  const phoneNumberId = newPhoneNumberId()
  await connect(it, organizationId, phoneNumberId, fields)
  return { organizationId, phoneNumberId }
}

const due = async (...phoneNumberIds: string[]) => {
  await it.app.sql`update accounts set poll_at = now() where phone_number_id in ${it.app.sql(phoneNumberIds)}`
  polling.wake()
}

interface Row {
  status: string
  upstreamStatus: string | null
  name: string
  minutes: number
  isHeld: boolean
}

async function account(phoneNumberId: string) {
  const [row] = await it.app.sql<Row[]>`
    select status, upstream_status, name, extract(epoch from poll_at - now())::float8 / 60 as minutes,
      poll_held_until > now() as is_held
    from accounts where phone_number_id = ${phoneNumberId}
  `
  return row
}

const settled = (phoneNumberId: string, expected: Partial<Row>) =>
  until(async () => expect(await account(phoneNumberId)).toMatchObject({ ...expected, isHeld: false }))
const told = (phoneNumberId: string) => peers.told.messaging.filter((state) => state.phone_number_id === phoneNumberId)

/** As by an instance that asks for them from now on. */
const claimedTogether = (phoneNumberIds: string[]) => it.app.sql<DueAccount[]>`
  update accounts set poll_held_until = now() + interval '1 minute', poll_at = now() + interval '1 minute'
  where phone_number_id in ${it.app.sql(phoneNumberIds)}
  returning organization_id, id, phone_number_id, business_account_id, sealed_token, version, poll_failures,
    poll_held_until::text as held_until
`

async function claimed(phoneNumberId: string) {
  const [account] = await claimedTogether([phoneNumberId])
  if (!account) throw new Error('no account')
  return account
}

describe('polling', () => {
  test('a number follows what the platform shows, messaging is told, and it is asked again each minute while degraded', async () => {
    const { phoneNumberId } = await connected()
    knowNumber(it, phoneNumberId, { status: 'RESTRICTED', verified_name: 'New Name' })
    await due(phoneNumberId)
    await settled(phoneNumberId, { status: 'degraded', upstreamStatus: 'RESTRICTED', name: 'New Name' })
    await until(() => expect(told(phoneNumberId).at(-1)).toMatchObject({ refusal: 'account_restricted', version: 2 }))
    const degraded = await account(phoneNumberId)
    expect(Math.round(degraded?.minutes ?? 0)).toBe(1)
    knowNumber(it, phoneNumberId)
    await due(phoneNumberId)
    await settled(phoneNumberId, { status: 'connected' })
    expect((await account(phoneNumberId))?.minutes).toBeGreaterThan(8.5)
  })

  test('messaging is told how many messages a second the platform takes from a number', async () => {
    const { phoneNumberId } = await connected({ is_on_biz_app: true, throughput: { level: 'STANDARD' } })
    const paces = () => told(phoneNumberId).map((state) => state.messages_per_second)
    expect(paces()).toEqual([20])
    for (const [fields, expected] of [
      [{ is_on_biz_app: false, throughput: { level: 'HIGH' } }, 1_000],
      [{ is_on_biz_app: false, throughput: { level: 'STANDARD' } }, null],
      [{ throughput: { level: 'NOT_APPLICABLE' }, is_on_biz_app: true }, 20],
      [{}, null],
    ] as const) {
      knowNumber(it, phoneNumberId, fields)
      await due(phoneNumberId)
      await until(() => expect(paces().at(-1)).toBe(expected))
    }
  })

  test('what has not changed is told to nobody', async () => {
    const { phoneNumberId } = await connected()
    await due(phoneNumberId)
    await until(async () => expect((await account(phoneNumberId))?.minutes).toBeGreaterThan(8))
    expect(told(phoneNumberId)).toHaveLength(1)
  })

  test('what has not changed is noted while the organization’s row is locked', async () => {
    const { organizationId, phoneNumberId } = await connected()
    await it.app.sql.begin(async (tx) => {
      await tx`select id from organizations where id = ${organizationId} for no key update`
      await due(phoneNumberId)
      await until(async () => expect((await account(phoneNumberId))?.minutes).toBeGreaterThan(8))
    })
    expect(await account(phoneNumberId)).toMatchObject({ status: 'connected', isHeld: false })
  })

  test('a change that came while the platform was asked is newer than its answer', async () => {
    const { phoneNumberId } = await connected()
    const { sql } = it.app
    const asked = await claimed(phoneNumberId)
    await sql`update accounts set name = 'Newer', version = version + 1 where phone_number_id = ${phoneNumberId}`
    const answer = { phoneNumber: null, name: 'Older', status: 'BANNED', messagesPerSecond: null }
    expect(await confirmAccount(sql, asked, answer)).toBe(false)
    expect(await account(phoneNumberId)).toMatchObject({ isHeld: true })
    await sql.begin((tx) => takeOver(tx, asked, answer))
    const row = await account(phoneNumberId)
    expect(row).toMatchObject({ isHeld: false, name: 'Newer', status: 'connected' })
    expect(row?.minutes).toBeLessThan(1)
  })

  test.each([
    ['a token that is void', { status: 401, body: { error: { code: 190, message: 'No.' } } }],
    ['a number that is gone', { status: 400, body: { error: { code: 100, error_subcode: 33, message: 'No.' } } }],
  ])('%s disconnects it', async (_, answer) => {
    const { phoneNumberId } = await connected()
    it.upstream.answers.set(`/${phoneNumberId}`, answer)
    await due(phoneNumberId)
    await settled(phoneNumberId, { status: 'disconnected' })
  })

  test('an answer that is none changes nothing, and it is asked again soon, then less often', async () => {
    const { phoneNumberId } = await connected()
    it.upstream.answers.set(`/${phoneNumberId}`, { status: 503, body: '<html>' })
    for (const minutes of [1, 2, 4]) {
      await due(phoneNumberId)
      await settled(phoneNumberId, { status: 'connected', minutes: expect.closeTo(minutes, 0) })
      const row = await account(phoneNumberId)
      expect(Math.abs((row?.minutes ?? 0) - minutes)).toBeLessThanOrEqual(0.1 * minutes + 0.1)
    }
  })

  test.each([4, 17, 613, 80007, 80008])(
    'a budget of calls that is used up is left alone for ten minutes: %i',
    async (code) => {
      const { phoneNumberId } = await connected()
      it.upstream.answers.set(`/${phoneNumberId}`, { status: 400, body: { error: { code, message: 'No.' } } })
      await due(phoneNumberId)
      await until(async () => expect((await account(phoneNumberId))?.minutes).toBeGreaterThan(8))
      expect(await account(phoneNumberId)).toMatchObject({ status: 'connected', isHeld: false })
    },
  )

  test('what the platform answers to the token that a number had before it was connected again puts off no poll', async () => {
    const { organizationId, phoneNumberId } = await connected()
    const asked = await claimed(phoneNumberId)
    await connect(it, organizationId, phoneNumberId)
    it.upstream.answers.set(`/${phoneNumberId}`, { status: 400, body: { error: { code: 4, message: 'No.' } } })
    await pollAccount(it.app, asked, new AbortController().signal)
    const row = await account(phoneNumberId)
    expect(row).toMatchObject({ status: 'connected', isHeld: false })
    expect(row?.minutes).toBeLessThanOrEqual(1)
  })

  test('what the platform answers to who has lost the number to another instance changes nothing', async () => {
    const { phoneNumberId } = await connected()
    const asked = await claimed(phoneNumberId)
    await it.app.sql`
      update accounts set poll_held_until = now() + interval '2 minutes' where phone_number_id = ${phoneNumberId}
    `
    knowNumber(it, phoneNumberId, { status: 'BANNED' })
    await pollAccount(it.app, asked, new AbortController().signal)
    expect(await account(phoneNumberId)).toMatchObject({ status: 'connected', isHeld: true })
  })

  test('numbers of one organization that are asked for together take each its own answer', async () => {
    const { organizationId, phoneNumberId } = await connected()
    const [silent, changed, waiting] = [newPhoneNumberId(), newPhoneNumberId(), newPhoneNumberId()]
    for (const id of [silent, changed, waiting]) await connect(it, organizationId, id)
    const asked = await claimedTogether([phoneNumberId, silent, changed, waiting])
    await it.app.sql`update accounts set version = version + 1 where phone_number_id = ${changed}`
    for (const id of [phoneNumberId, changed]) knowNumber(it, id, { status: 'BANNED' })
    it.upstream.answers.set(`/${silent}`, { status: 503, body: '<html>' })
    for (const account of asked.filter((one) => one.phoneNumberId !== waiting))
      await pollAccount(it.app, account, new AbortController().signal)
    expect(await account(phoneNumberId)).toMatchObject({ status: 'disconnected', isHeld: false })
    for (const id of [silent, changed]) expect(await account(id)).toMatchObject({ status: 'connected' })
    expect(await account(waiting)).toMatchObject({ status: 'connected', isHeld: true })
  })

  test('a number that does not answer delays no other', async () => {
    const silent = await connected()
    const others = await Promise.all([connected(), connected(), connected()])
    it.upstream.answers.set(`/${silent.phoneNumberId}`, 'silence')
    for (const { phoneNumberId } of others) knowNumber(it, phoneNumberId, { status: 'BANNED' })
    await due(silent.phoneNumberId, ...others.map(({ phoneNumberId }) => phoneNumberId))
    for (const { phoneNumberId } of others) await settled(phoneNumberId, { status: 'disconnected' })
    expect(await account(silent.phoneNumberId)).toMatchObject({ status: 'connected', isHeld: true })
    it.upstream.answers.set(`/${silent.phoneNumberId}`, 'hang up')
  })

  test('one that does not answer is let go though its row is locked for longer than a statement waits', async () => {
    const { phoneNumberId } = await connected()
    const held = await claimed(phoneNumberId)
    it.upstream.answers.set(`/${phoneNumberId}`, 'hang up')
    const { asking } = await it.app.sql.begin(async (tx) => {
      await tx`select from accounts where phone_number_id = ${phoneNumberId} for update`
      const polled = Promise.allSettled([pollAccount(it.app, held, new AbortController().signal)])
      await untilSomebodyWaits(tx)
      await sleep(lockTimeoutMs + 100)
      return { asking: polled }
    })
    await asking
    expect(await account(phoneNumberId)).toMatchObject({ isHeld: false })
  })

  test('one whose row is locked just now holds up no other', async () => {
    const { phoneNumberId: locked } = await connected()
    const { phoneNumberId: other } = await connected()
    // Due once the lock is there.
    await it.app.sql`
      update accounts set poll_at = now() + interval '200 ms' where phone_number_id in ${it.app.sql([locked, other])}
    `
    await it.app.sql.begin(async (tx) => {
      await tx`select from accounts where phone_number_id = ${locked} for update`
      await until(async () => expect((await account(other))?.minutes).toBeGreaterThan(8))
    })
  })

  test('of two instances one asks', async () => {
    const other = startPolling(it.app)
    const numbers = await Promise.all(Array.from({ length: 8 }, () => connected()))
    it.upstream.asked.length = 0
    await due(...numbers.map(({ phoneNumberId }) => phoneNumberId))
    other.wake()
    for (const { phoneNumberId } of numbers)
      await until(async () => expect((await account(phoneNumberId))?.minutes).toBeGreaterThan(8))
    await other.stop()
    for (const { phoneNumberId } of numbers)
      expect(it.upstream.asked.filter(({ line }) => line.includes(`/${phoneNumberId}?`))).toHaveLength(1)
  })

  test('a detached number is not asked for', async () => {
    const { organizationId, phoneNumberId } = await connected()
    await it.app.sql`update accounts set attached = false where phone_number_id = ${phoneNumberId}`
    it.upstream.asked.length = 0
    const another = newPhoneNumberId()
    await connect(it, organizationId, another)
    await due(phoneNumberId, another)
    await until(async () => expect((await account(another))?.minutes).toBeGreaterThan(8))
    expect(it.upstream.asked.filter(({ line }) => line.includes(phoneNumberId))).toEqual([])
  })
})

type Report = { code: number } | { event: string }

async function report(organizationId: string, phoneNumberId: string | null, what: Report, id?: string, at?: Date) {
  const { sql, relay } = it.app
  const change = 'event' in what ? { field: 'account_update', value: what } : null
  const data = {
    phone_number_id: phoneNumberId,
    business_account_id: '900900',
    code: 'code' in what ? what.code : null,
    change,
    at: at?.toISOString(),
  }
  const origin = { organizationId, ...(id !== undefined && { id }) }
  await sql.begin((tx) => emit(tx, accountReported, data, origin))
  relay.wake()
}

const handled = (organizationId: string, id: string) =>
  until(async () => {
    const rows = await it.app.sql`select from handled_events where event_id = ${`${organizationId}:${id}`}`
    expect(rows).toHaveLength(1)
  })

describe('changes that polls find', () => {
  test('of many numbers leave sessions for the look-ups of keys', async () => {
    const numbers = await Promise.all(Array.from({ length: 12 }, () => connected()))
    for (const { phoneNumberId } of numbers) knowNumber(it, phoneNumberId, { status: 'BANNED' })
    const organizationIds = numbers.map(({ organizationId }) => organizationId)
    await it.app.sql.begin(async (tx) => {
      await tx`select from organizations where id in ${tx(organizationIds)} for update`
      await due(...numbers.map(({ phoneNumberId }) => phoneNumberId))
      await untilSomebodyWaits(tx, mostChanging)
      await sleep(300)
      expect(await lockWaits(tx)).toHaveLength(mostChanging)
      await it.app.sql`select 1`
    })
    await due(...numbers.map(({ phoneNumberId }) => phoneNumberId))
    for (const { phoneNumberId } of numbers) await settled(phoneNumberId, { status: 'disconnected' })
  })

  test('of one organization wait for its row one at a time', async () => {
    const { organizationId, phoneNumberId } = await connected()
    const numbers = [phoneNumberId, newPhoneNumberId(), newPhoneNumberId()]
    for (const id of numbers.slice(1)) await connect(it, organizationId, id)
    const { phoneNumberId: other } = await connected()
    for (const id of [...numbers, other]) knowNumber(it, id, { status: 'BANNED' })
    await it.app.sql.begin(async (tx) => {
      await tx`select from organizations where id = ${organizationId} for update`
      await due(...numbers)
      await untilSomebodyWaits(tx)
      await due(other)
      await settled(other, { status: 'disconnected' })
      expect((await lockWaits(tx)).length).toBeLessThanOrEqual(1)
    })
    await due(...numbers)
    for (const id of numbers) await settled(id, { status: 'disconnected' })
  })
})

describe('a report', () => {
  test('of a restriction degrades at once, though the platform shows the number connected, until it has stood a minute', async () => {
    const { organizationId, phoneNumberId } = await connected()
    await report(organizationId, phoneNumberId, { code: 131_031 })
    await until(() => expect(told(phoneNumberId).at(-1)).toMatchObject({ refusal: 'account_restricted' }))
    await until(async () => expect((await account(phoneNumberId))?.minutes).toBeGreaterThan(0.5))
    await settled(phoneNumberId, { status: 'degraded', upstreamStatus: 'CONNECTED' })
    await it.app.sql`update accounts set reported_until = now() where phone_number_id = ${phoneNumberId}`
    await due(phoneNumberId)
    await settled(phoneNumberId, { status: 'connected' })
  })

  test('of a restriction stands a minute by the clock of the database, whatever that of the host', async () => {
    const { organizationId, phoneNumberId } = await connected()
    const sql = await sessionWithClock(it.app.sql, -90_000)
    const restriction = { phone_number_id: phoneNumberId, business_account_id: '900900', code: 131_031, change: null }
    await sql.begin((tx) => settleReport(tx, organizationId, restriction, it.app.upstream.appId))
    const rows = await sql`
      select reported_until between now() + interval '50 seconds' and now() + interval '1 minute' as stands_a_minute
      from accounts where phone_number_id = ${phoneNumberId}
    `
    expect(rows).toEqual([{ standsAMinute: true }])
    const answer = { phoneNumber: null, name: null, status: 'CONNECTED', messagesPerSecond: null }
    const asked = await claimed(phoneNumberId)
    await sql.begin((tx) => takeOver(tx, asked, answer))
    expect(await account(phoneNumberId)).toMatchObject({ status: 'degraded', isHeld: false })
  })

  test('of a restriction makes nothing better of a number that is disconnected', async () => {
    const { organizationId, phoneNumberId } = await connected()
    await it.app.sql`update accounts set status = 'disconnected' where phone_number_id = ${phoneNumberId}`
    const restriction = { phone_number_id: phoneNumberId, business_account_id: '900900', code: 131_031, change: null }
    await it.app.sql.begin((tx) => settleReport(tx, organizationId, restriction, it.app.upstream.appId))
    expect(await account(phoneNumberId)).toMatchObject({ status: 'disconnected' })
  })

  test('of a restriction does not outlive that the number is connected again', async () => {
    const { organizationId, phoneNumberId } = await connected()
    await it.app.sql`
      update accounts set reported_until = now() + interval '1 day' where phone_number_id = ${phoneNumberId}
    `
    await connect(it, organizationId, phoneNumberId, { status: 'PENDING' })
    const asked = await claimed(phoneNumberId)
    const answer = { phoneNumber: null, name: null, status: 'CONNECTED', messagesPerSecond: null }
    await it.app.sql.begin((tx) => takeOver(tx, asked, answer))
    expect(await account(phoneNumberId)).toMatchObject({ status: 'connected' })
  })

  test('of an error does not cut short a restriction whose end is known', async () => {
    const { organizationId, phoneNumberId } = await connected()
    await it.app.sql`
      update accounts set reported_until = now() + interval '1 day' where phone_number_id = ${phoneNumberId}
    `
    await report(organizationId, phoneNumberId, { code: 131_031 }, 'shorter')
    await handled(organizationId, 'shorter')
    const rows = await it.app.sql`
      select reported_until > now() + interval '1 hour' as is_long from accounts where phone_number_id = ${phoneNumberId}
    `
    expect(rows).toEqual([{ isLong: true }])
  })

  test('of what was before the number was connected again, or came back, has it looked at and no more', async () => {
    const { organizationId, phoneNumberId } = await connected()
    const removed = new Date()
    const removal = (at: Date) => report(organizationId, null, { event: 'PARTNER_REMOVED' }, undefined, at)
    await removal(new Date(removed.getTime() + 1_000))
    await settled(phoneNumberId, { status: 'disconnected' })
    await it.app.sql`update accounts set poll_at = now() + interval '1 hour' where phone_number_id = ${phoneNumberId}`
    // It is connected again later; then the callback is worked through again, and a send fails late that had begun before.
    await it.app.sql`select pg_sleep(1)`
    await connect(it, organizationId, phoneNumberId)
    const lastPoll = async () => (await account(phoneNumberId))?.minutes
    for (const again of [removal, (at: Date) => report(organizationId, phoneNumberId, { code: 190 }, undefined, at)]) {
      await it.app.sql`update accounts set poll_at = now() + interval '1 hour' where phone_number_id = ${phoneNumberId}`
      await again(removed)
      await until(async () => expect(await lastPoll()).toBeLessThan(30))
      await settled(phoneNumberId, { status: 'connected' })
    }
    const back = new Date(Date.now() + 60_000)
    await report(organizationId, null, { event: 'PARTNER_ADDED' }, undefined, back)
    await it.app.sql`update accounts set poll_at = now() + interval '1 hour' where phone_number_id = ${phoneNumberId}`
    await removal(new Date(back.getTime() - 1_000))
    await until(async () => expect(await lastPoll()).toBeLessThan(30))
    await settled(phoneNumberId, { status: 'connected' })
    await removal(new Date(back.getTime() + 1_000))
    await settled(phoneNumberId, { status: 'disconnected' })
  })

  test('of a number counts though another one of the organization was connected since', async () => {
    const { organizationId, phoneNumberId } = await connected()
    const at = new Date()
    await it.app.sql`select pg_sleep(0.01)`
    await connect(it, organizationId)
    await report(organizationId, phoneNumberId, { event: 'PARTNER_REMOVED' }, undefined, at)
    await settled(phoneNumberId, { status: 'disconnected' })
  })

  test('of a removal holds until the number comes back', async () => {
    const { organizationId, phoneNumberId } = await connected()
    await report(organizationId, null, { event: 'PARTNER_REMOVED' })
    await settled(phoneNumberId, { status: 'disconnected' })
    await due(phoneNumberId)
    await until(async () => expect((await account(phoneNumberId))?.minutes).toBeGreaterThan(8))
    await settled(phoneNumberId, { status: 'disconnected' })
    await report(organizationId, null, { event: 'PARTNER_ADDED' })
    await settled(phoneNumberId, { status: 'connected' })
  })

  test("of a new phone takes away the number in the phone's app, and none beside it of the same business account", async () => {
    const { organizationId, phoneNumberId } = await connected({ is_on_biz_app: true })
    const beside = newPhoneNumberId()
    await connect(it, organizationId, beside)
    await report(organizationId, null, { event: 'ACCOUNT_OFFBOARDED' })
    await settled(phoneNumberId, { status: 'disconnected' })
    expect(await account(beside)).toMatchObject({ status: 'connected' })
    await report(organizationId, null, { event: 'ACCOUNT_RECONNECTED' })
    await settled(phoneNumberId, { status: 'connected' })
  })

  test('of a return that was before the removal does not bring the number back, though it comes later', async () => {
    const { organizationId, phoneNumberId } = await connected()
    const removed = new Date(Date.now() + 60_000)
    const returned = (at: Date, id: string) => report(organizationId, null, { event: 'PARTNER_ADDED' }, id, at)
    await report(organizationId, null, { event: 'PARTNER_REMOVED' }, undefined, removed)
    await settled(phoneNumberId, { status: 'disconnected' })
    await returned(new Date(removed.getTime() - 1_000), 'late-return')
    await handled(organizationId, 'late-return')
    await due(phoneNumberId)
    await until(async () => expect((await account(phoneNumberId))?.minutes).toBeGreaterThan(8))
    await settled(phoneNumberId, { status: 'disconnected' })
    await returned(new Date(removed.getTime() + 1_000), 'return')
    await settled(phoneNumberId, { status: 'connected' })
  })

  test('that comes twice is settled once, and touches no other organization', async () => {
    const { organizationId, phoneNumberId } = await connected()
    const other = await connected()
    await report(organizationId, null, { code: 190 }, 'report-1')
    await report(organizationId, null, { code: 190 }, 'report-1')
    await settled(phoneNumberId, { status: 'disconnected' })
    await until(() => expect(told(phoneNumberId)).toHaveLength(2))
    expect(await account(other.phoneNumberId)).toMatchObject({ status: 'connected' })
  })

  test('that says nothing of the status has the number asked for', async () => {
    const { organizationId, phoneNumberId } = await connected()
    knowNumber(it, phoneNumberId, { status: 'FLAGGED' })
    await report(organizationId, phoneNumberId, { event: 'ACCOUNT_VIOLATION' })
    await settled(phoneNumberId, { status: 'connected', upstreamStatus: 'FLAGGED' })
  })

  test('that comes while the platform is asked has it asked again, since its answer may be older', async () => {
    const { organizationId, phoneNumberId } = await connected()
    const { promise: after, resolve: letAnswer } = Promise.withResolvers<void>()
    const restricted = { id: phoneNumberId, verified_name: 'Acme', status: 'RESTRICTED' }
    it.upstream.answers.set(`/${phoneNumberId}`, { body: restricted, after })
    it.upstream.asked.length = 0
    await due(phoneNumberId)
    await until(() => expect(it.upstream.asked).toHaveLength(1))
    knowNumber(it, phoneNumberId)
    await report(organizationId, phoneNumberId, { event: 'ACCOUNT_VIOLATION' }, 'meanwhile')
    await handled(organizationId, 'meanwhile')
    letAnswer()
    await settled(phoneNumberId, { status: 'connected', upstreamStatus: 'CONNECTED' })
    const refusals = () => told(phoneNumberId).map(({ refusal }) => refusal)
    await until(() => expect(refusals().slice(-2)).toEqual(['account_restricted', null]))
  })

  test('of every send that fails has the platform asked once a minute', async () => {
    const { organizationId, phoneNumberId } = await connected()
    const asked = () => it.upstream.asked.filter(({ line }) => line.includes(`/${phoneNumberId}?`)).length
    it.upstream.asked.length = 0
    for (let n = 1; n <= 3; n++) {
      await report(organizationId, phoneNumberId, { code: 131_037 }, `failed-${n}`)
      await handled(organizationId, `failed-${n}`)
      await until(() => expect(asked()).toBe(1))
    }
    expect((await account(phoneNumberId))?.minutes).toBeLessThanOrEqual(1)
  })

  test('of a send that fails waits for nothing once the platform was asked, or is about to be', async () => {
    const { organizationId, phoneNumberId } = await connected()
    await it.app.sql`update accounts set polled_at = now() where phone_number_id = ${phoneNumberId}`
    await it.app.sql.begin(async (tx) => {
      await tx`select from organizations where id = ${organizationId} for update`
      await report(organizationId, phoneNumberId, { code: 131_037 }, 'failed')
      await handled(organizationId, 'failed')
    })
    expect((await account(phoneNumberId))?.minutes).toBeGreaterThan(0.5)
  })

  test('that changes nothing of a number is told to nobody', async () => {
    const { organizationId, phoneNumberId } = await connected()
    for (const [id, code] of [131_031, 131_031, 131_037, 131_037].entries()) {
      await report(organizationId, phoneNumberId, { code }, `failed-${id}`)
      await handled(organizationId, `failed-${id}`)
    }
    expect(told(phoneNumberId).map(({ refusal }) => refusal)).toEqual([null, 'account_restricted'])
  })
})
