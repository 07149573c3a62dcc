import { createKey, updateOrganization } from '@app/shared/contracts/platform.ts'
import { expect, test } from 'vitest'
import { helpFor, readArguments } from './arguments.ts'
import { explain } from './explain.ts'
import { kindOf } from './kinds.ts'

const read = (line: string) => readArguments(line.split(' '))

test('makes a question of the command, its id and its options', () => {
  expect(read('key create --organization org_1 --label production --expires-at 2030-01-01T00:00:00Z')).toEqual({
    contract: createKey,
    others: [],
    body: { organization_id: 'org_1', label: 'production', expires_at: '2030-01-01T00:00:00Z' },
  })
  expect(
    read(
      'organization update org_1 --features messaging,webhooks --retention-days none --window-check upstream --message-ttl-hours 48',
    ),
  ).toEqual({
    contract: updateOrganization,
    others: [],
    body: {
      organization_id: 'org_1',
      features: ['messaging', 'webhooks'],
      retention_days: null,
      settings: { window_check: 'upstream', message_ttl_hours: 48 },
    },
  })
})

test('reads a secret from the input where it is said to stand there, and no other option', () => {
  const connect = 'account connect --organization - --phone-number-id 1 --business-account-id 2 --access-token'
  const bodyOf = (token: string) => readArguments(`${connect} ${token}`.split(' '), () => ' EAA\n').body
  expect(bodyOf('-')).toMatchObject({ organization_id: '-', access_token: 'EAA' })
  expect(bodyOf('EAB')).toMatchObject({ access_token: 'EAB' })
})

test('names the options that are missing', () => {
  expect(() => read('member create --organization org_1 --name Ana')).toThrow('--team, --email missing')
  expect(() => read('key list --organization=')).toThrow('--organization missing')
})

test('names an option that it does not know', () => {
  expect(() => read('key create --organization org_1 --label x --lable y')).toThrow("Unknown option '--lable'")
})

test('refuses an option that is given twice, instead of forgetting one', () => {
  expect(() => read('organization update org_1 --features messaging --features=webhooks')).toThrow(
    /'--features' is given more than once. Usage: organization update/,
  )
})

test('refuses a command that it does not know, and names those of its noun, or the way to all', () => {
  expect(() => read('key delete key_1')).toThrow(
    /Unknown command "key delete". Known are: key create (.*); key revoke ID$/,
  )
  expect(() => read('explain')).toThrow('Known are: explain ID')
  expect(() => read('secrets count now')).toThrow('Nothing belongs after "secrets count".')
  expect(() => read('keys revoke key_1')).toThrow('Unknown command "keys revoke". `npm run admin -- help` lists all.')
})

test('help is text: of all commands, of a noun, of one command', () => {
  for (const asked of [[], ['help'], ['--help'], ['-h'], ['nonsense', '--help']])
    expect(helpFor(asked)).toMatch(/  organization create (.|\n)*  key revoke ID\n(.|\n)*  secrets reseal\n/)
  const lines = (line: string) => helpFor(line.split(' '))?.match(/^  .*/gm)
  expect(lines('key --help')).toHaveLength(3)
  expect(lines('help key')).toHaveLength(3)
  expect(lines('key revoke --help')).toEqual(['  key revoke ID'])
  expect(helpFor(['key', 'revoke', 'key_1'])).toBeNull()
})

test('refuses an id too few or too many', () => {
  expect(() => read('key revoke')).toThrow('Exactly one ID')
  expect(() => read('key revoke key_1 key_2')).toThrow('Exactly one ID')
  expect(() => read('team create team_1 --organization org_1 --name x')).toThrow('Nothing belongs after')
})

test('refuses a value of the wrong kind', () => {
  expect(() => read('organization update org_1 --retention-days soon')).toThrow(
    '--retention-days must be a whole number',
  )
  expect(() => read('organization update org_1 --require-marketing-consent yes')).toThrow('must be "true" or "false"')
  expect(() => read('organization update org_1 --features ,')).toThrow('--features must be names with a comma between')
})

test.each([
  [[], /^What is to be explained\? Usage: explain ID; or explain --organization … --key …$/],
  [['msg_1', 'msg_2'], /^What is to be explained\?/],
  [['--key', 'k'], /^What is to be explained\?/],
  [['msg_1', '--organization', 'org_1', '--key', 'k'], /^What is to be explained\?/],
  [['--key', 'k', '--key=l'], /^Option '--key' is given more than once. Usage: explain ID/],
  [['--keys', 'k'], /^Unknown option '--keys'. Usage: explain ID/],
  [['team_1'], /^"team_1" is none of these: a message \(msg_…\); .*a webhook subscription \(wbs_…\); /],
])('explain says what it takes: %j', (words, told) => {
  expect(() => explain(words, 'req_1')).toThrow(told)
})

test.each([
  ['msg_1', 'a message'],
  ['msg_1:sent', 'an event'],
  ['evt_1', 'an event'],
  ['wamid.A=:delivered', 'an event'],
  ['wamid.A=', 'a message or an event, by the platform’s id'],
  ['106540352242922', 'a number or a business account, by the platform’s id'],
])('what is to be explained is known by its id: %s', (id, name) => {
  expect(kindOf(id).name).toBe(name)
})

test('says "none" only of a number that may be none', () => {
  const update = (option: string) => read(`organization update org_1 --${option}`)
  expect(() => update('message-ttl-hours none')).toThrow('--message-ttl-hours must be a whole number, and is "none".')
  expect(() => update('retention-days x')).toThrow('--retention-days must be a whole number or "none", and is "x".')
})
