import { expect, test } from 'vitest'
import { learn, type Profile, senderOf } from './sender.ts'

const nobody: Profile = { phoneNumber: null, waId: null, bsuid: null, parentBsuid: null, username: null, name: null }
const ana: Profile = {
  phoneNumber: '+15550123456',
  waId: '15550123456',
  bsuid: 'US.1',
  parentBsuid: 'US.ENT.1',
  username: 'ana.p',
  name: 'Ana',
}
const told = {
  ...nobody,
  waId: '15550999999',
  phoneNumber: '+15550999999',
  bsuid: 'US.2',
  username: 'ana.q',
  name: 'A.',
}
const noon = new Date('2026-03-01T12:00:00.000Z')
const one = new Date('2026-03-01T13:00:00.000Z')

const body = {
  upstream_id: 'wamid.1',
  message_id: 'msg_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD',
  sent_at: noon.toISOString(),
  wa_id: '15550123456',
  bsuid: 'US.1',
  parent_bsuid: null,
  username: 'ana.p',
  profile_name: 'Ana',
  counts_unread: true,
}

test('the phone number of a sender is + and the digits of its wa_id', () => {
  expect(senderOf(body)).toMatchObject({ phoneNumber: '+15550123456', waId: '15550123456', bsuid: 'US.1', name: 'Ana' })
  expect(senderOf({ ...body, wa_id: null })).toMatchObject({ phoneNumber: null, waId: null })
  expect(senderOf({ ...body, wa_id: '' })).toMatchObject({ phoneNumber: null, waId: null })
})

test('a profile name is cut to 200 characters, none of them half; a blank one is none', () => {
  expect(senderOf({ ...body, profile_name: '💛'.repeat(300) }).name).toBe('💛'.repeat(200))
  expect(senderOf({ ...body, profile_name: '  ' }).name).toBeNull()
})

test('an empty profile is filled by any message', () => {
  expect(learn(nobody, { ...told, sentAt: noon }, one)).toEqual(told)
})

test('phone number and name stay; the newest message changes the rest', () => {
  expect(learn(ana, { ...told, sentAt: one }, noon)).toEqual({
    ...ana,
    waId: '15550999999',
    bsuid: 'US.2',
    username: 'ana.q',
  })
})

test('an older message that comes late changes nothing', () => {
  expect(learn(ana, { ...told, sentAt: noon }, one)).toEqual(ana)
})

test('what a message does not tell stays', () => {
  expect(learn(ana, { ...nobody, sentAt: one }, noon)).toEqual(ana)
})
