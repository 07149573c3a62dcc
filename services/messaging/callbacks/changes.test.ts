import { until } from '@app/test/until.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { phoneNumberId, type TestMessaging, testMessaging } from '../testing/app.ts'
import { businessAccountId, platformOf } from '../testing/callbacks.ts'

let app: TestMessaging
let platform: ReturnType<typeof platformOf>
beforeAll(async () => {
  app = await testMessaging()
  platform = platformOf(app)
})
afterAll(() => app.close())

const settled = () => until(async () => expect(await app.sql`select 1 from callback_items`).toHaveLength(0))

/** What was reported of accounts since the last look. */
let seen = 0
const at = expect.stringMatching(/Z$/)
async function reports() {
  await settled()
  const all = (await app.events()).filter(({ subject }) => subject === 'event.messaging.account-reported')
  const fresh = all.slice(seen).map(({ payload }) => payload)
  seen = all.length
  return fresh
}

const unhandled = () => app.sql`select field, reason, count from unhandled_changes order by field, reason`

test('a change of a business account that nobody has is counted and kept', async () => {
  await platform.change('account_update', { event: 'ACCOUNT_RESTRICTION' }, '999')
  await platform.change('account_update', 'nonsense')
  expect(await reports()).toEqual([])
  expect(await unhandled()).toEqual([
    { field: 'account_update', reason: 'shape', count: '1' },
    { field: 'account_update', reason: 'unknown_number', count: '1' },
  ])
})

test('a change of an account is reported for the number that it shows, else for all of the business account', async () => {
  const restriction = { event: 'ACCOUNT_RESTRICTION', restriction_info: [{ restriction_type: 'X' }] }
  const quality = { display_phone_number: '+1 (555) 000-1111', event: 'FLAGGED' }
  await platform.change('account_update', restriction)
  expect(await reports()).toEqual([
    {
      phone_number_id: null,
      business_account_id: businessAccountId,
      code: null,
      change: { field: 'account_update', value: restriction },
      at,
    },
  ])
  await platform.change('phone_number_quality_update', quality)
  expect(await reports()).toEqual([
    {
      phone_number_id: phoneNumberId,
      business_account_id: businessAccountId,
      code: null,
      change: { field: 'phone_number_quality_update', value: quality },
      at,
    },
  ])
})

test('a number that is shown as a number is that number, not all of the business account', async () => {
  const removed = { event: 'PARTNER_REMOVED', phone_number: 15550001111 }
  await platform.change('account_update', removed)
  expect(await reports()).toMatchObject([{ phone_number_id: phoneNumberId, change: { value: removed } }])
  await platform.change('account_update', {
    event: 'PARTNER_REMOVED',
    phone_number: null,
    display_phone_number: 15550009999,
  })
  expect(await reports()).toMatchObject([{ phone_number_id: null, change: { value: null } }])
})

test('a number that is shown in its other writing is that number', async () => {
  await app.setSender({ phone_number: '+5511988887777' })
  await platform.change('account_update', { event: 'PARTNER_REMOVED', phone_number: '551188887777' })
  expect(await reports()).toMatchObject([
    { phone_number_id: phoneNumberId, change: { value: { event: 'PARTNER_REMOVED' } } },
  ])
  await app.setSender({})
})

test('errors of a number without a message are reported by their codes, once each; one without a code holds up none', async () => {
  await platform.numberChange('messages', {
    errors: [{ code: 131031 }, { title: 'none' }, null, { code: 131031 }, { code: '190' }],
  })
  const about = { phone_number_id: phoneNumberId, business_account_id: businessAccountId, change: null, at }
  expect(await reports()).toEqual([
    { ...about, code: 131031 },
    { ...about, code: 190 },
  ])
})

test('what is for people to know is counted, and an unknown field is no error', async () => {
  await platform.change('security', { display_phone_number: '15550001111', event: 'PIN_CHANGED' })
  await platform.change('constructor', {})
  expect(await reports()).toEqual([])
  expect(await unhandled()).toEqual(
    expect.arrayContaining([
      { field: 'constructor', reason: 'unknown_field', count: '1' },
      { field: 'security', reason: 'informational', count: '1' },
    ]),
  )
})

test('a change about a partner names the business account in its value: the entry is of the partner itself', async () => {
  const removed = { event: 'PARTNER_REMOVED', waba_info: { waba_id: businessAccountId, owner_business_id: '942647' } }
  await platform.change('account_update', removed, '35602282435505')
  expect(await reports()).toEqual([
    {
      phone_number_id: null,
      business_account_id: businessAccountId,
      code: null,
      change: { field: 'account_update', value: removed },
      at,
    },
  ])
})

test('a change of a number that is not the organization’s only has its numbers asked for', async () => {
  await platform.change('account_update', { event: 'PARTNER_REMOVED', phone_number: '15550009999' })
  expect(await reports()).toMatchObject([
    { phone_number_id: null, business_account_id: businessAccountId, change: { field: 'account_update', value: null } },
  ])
})

test('a number that was detached, or is of another business account, is not one that the change is about', async () => {
  const { sql } = app
  const [sender] = await sql`select * from senders`
  await sql`insert into senders ${sql({ ...sender, phoneNumberId: '2', phoneNumber: '+15550003332', attached: false })}`
  await sql`insert into senders ${sql({ ...sender, phoneNumberId: '3', phoneNumber: '+15550003333', businessAccountId: '77' })}`
  for (const phone_number of ['15550003332', '15550003333']) {
    await platform.change('account_update', { event: 'PARTNER_REMOVED', phone_number })
    expect(await reports()).toMatchObject([{ phone_number_id: null, change: { value: null } }])
  }
  await sql`delete from senders where phone_number_id in ('2', '3')`
})

test('two organizations with numbers of one business account are both told, each of its own number', async () => {
  const other = { organization_id: 'org_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD', phone_number_id: '206540352242922' }
  await app.setSender({ ...other, account_id: 'acc_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD', phone_number: '+15550002222' })
  await platform.change('account_update', { event: 'ACCOUNT_VIOLATION' })
  await settled()
  const rows = await app.sql<{ organization: string }[]>`
    select headers ->> 'organization' as organization from outbox where payload::text like ${'%' + Buffer.from('ACCOUNT_VIOLATION').toString('hex') + '%'}
  `
  expect(new Set(rows.map(({ organization }) => organization)).size).toBe(2)
  await reports()
  await platform.change('account_update', { event: 'PARTNER_REMOVED', phone_number: '15550002222' })
  const numbers = (await reports()).map((payload) => payload['phone_number_id'])
  expect(new Set(numbers)).toEqual(new Set([null, other.phone_number_id]))
})
