import { expect, test } from 'vitest'
import { effectOf } from './effect-of.ts'

const appId = '1000'

test.each([
  [131031, 'degrade'],
  [368, 'degrade'],
  [131042, 'degrade'],
  [0, 'disconnect'],
  [190, 'disconnect'],
  [33, 'disconnect'],
  [131037, 'poll'],
])('code %i: %s', (code, kind) => {
  expect(effectOf({ code, change: null }, appId).kind).toBe(kind)
})

const update = (value: object) => effectOf({ code: null, change: { field: 'account_update', value } }, appId)

test.each([
  ['PARTNER_REMOVED', 'remove'],
  ['PARTNER_APP_UNINSTALLED', 'remove'],
  ['ACCOUNT_DELETED', 'remove'],
  ['ACCOUNT_OFFBOARDED', 'remove'],
  ['ACCOUNT_RECONNECTED', 'restore'],
  ['PARTNER_ADDED', 'restore'],
  ['ACCOUNT_VIOLATION', 'poll'],
  ['ACCOUNT_RESTRICTION', 'degrade'],
  ['SOMETHING_NEW', 'poll'],
])('the event %s: %s', (event, kind) => {
  expect(update({ event }).kind).toBe(kind)
})

test('a restriction lasts until the last of its ends', () => {
  const restriction_info = [
    { restriction_type: 'RESTRICTED_BIZ_INITIATED_MESSAGING', expiration: 1_900_000_000 },
    { restriction_type: 'RESTRICTED_CUSTOMER_INITIATED_MESSAGING', expiration: 1_800_000_000 },
  ]
  expect(update({ event: 'ACCOUNT_RESTRICTION', restriction_info })).toEqual({
    kind: 'degrade',
    until: new Date(1_900_000_000_000),
  })
})

test.each([
  'RESTRICTED_ADD_PHONE_NUMBER_ACTION',
  'RESTRICTION_ON_ADD_PHONE_NUMBER_ACTION',
  'RESTRICTED_USER_INITIATED_CALLING',
  'RESTRICTED_BIZ_INITIATED_AND_USER_INITIATED_CALLING',
  'RESTRICTED_DIRECT_SEND_UTILITY_TEMPLATES',
  'RESTRICTED_SOMETHING_NEW',
])('a restriction that is not on messages only asks, and lengthens none that is: %s', (restriction_type) => {
  const beside = { restriction_type, expiration: 1_900_000_000 }
  expect(update({ event: 'ACCOUNT_RESTRICTION', restriction_info: [beside] })).toEqual({ kind: 'poll' })
  const ofMessages = { restriction_type: 'RESTRICTED_CUSTOMER_INITIATED_MESSAGING', expiration: 1_800_000_000 }
  expect(update({ event: 'ACCOUNT_RESTRICTION', restriction_info: [beside, ofMessages] })).toEqual({
    kind: 'degrade',
    until: new Date(1_800_000_000_000),
  })
})

test.each([[undefined], [[]], ['odd'], [[{}]], [[{ restriction_type: null }]]])(
  'a restriction that does not say on what is one on messages: %j',
  (restriction_info) => {
    expect(update({ event: 'ACCOUNT_RESTRICTION', restriction_info })).toEqual({ kind: 'degrade', until: null })
  },
)

test('an end of a restriction that is no time counts as not told', () => {
  const restriction_info = [{ restriction_type: 'RESTRICTED_BIZ_INITIATED_MESSAGING', expiration: 1_900_000_000_000 }]
  expect(update({ event: 'ACCOUNT_RESTRICTION', restriction_info })).toEqual({ kind: 'degrade', until: null })
})

test('a ban disconnects, its end restores, its announcement only asks', () => {
  const ban = (waba_ban_state: string) => update({ event: 'DISABLED_UPDATE', ban_info: { waba_ban_state } }).kind
  expect(['DISABLE', 'REINSTATE', 'SCHEDULE_FOR_DISABLE'].map(ban)).toEqual(['disconnect', 'restore', 'poll'])
})

test('other fields and shapes nobody knows only ask', () => {
  expect(
    effectOf({ code: null, change: { field: 'phone_number_quality_update', value: { event: 'FLAGGED' } } }, appId),
  ).toEqual({ kind: 'poll' })
  expect(effectOf({ code: null, change: { field: 'account_update', value: 'odd' } }, appId)).toEqual({ kind: 'poll' })
})

test('what a business does with another app of ours only asks', () => {
  const of = (partner_app_id: unknown) =>
    update({ event: 'PARTNER_APP_UNINSTALLED', waba_info: { partner_app_id } }).kind
  expect([appId, Number(appId), '2000'].map(of)).toEqual(['remove', 'remove', 'poll'])
})
