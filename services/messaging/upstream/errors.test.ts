import { expect, test } from 'vitest'
import { behaviourOf } from './errors.ts'

// The table of the platform's error reference, written down a second time, from the reading of it: code, action, our code,
// whether the account is looked at.
const auth = 'upstream_auth_failed'
const away = 'upstream_unavailable'
const limited = 'upstream_rate_limited'
const restricted = 'account_restricted'
const error = 'upstream_error'
const rows: [number, string, string, boolean?][] = [
  [0, 'fail', auth, true],
  [190, 'fail', auth, true],
  [3, 'fail', auth],
  [10, 'fail', auth],
  [200, 'fail', auth],
  [299, 'fail', auth],
  [131005, 'fail', auth],
  [1, 'retry', away],
  [2, 'retry', away],
  [131000, 'retry', away],
  [131016, 'retry', away],
  [133004, 'retry', away],
  [131057, 'retry', error],
  [2494100, 'retry', error],
  [4, 'number', limited],
  [17, 'number', limited],
  [613, 'number', limited],
  [80008, 'number', limited],
  [80007, 'number', limited],
  [130429, 'number', limited],
  [131056, 'pair', limited],
  [131048, 'fail', limited],
  [131064, 'fail', limited],
  [33, 'fail', error, true],
  [368, 'fail', restricted, true],
  [131031, 'fail', restricted, true],
  [131037, 'fail', error, true],
  [131042, 'fail', 'billing_problem', true],
  [131045, 'fail', error, true],
  [133000, 'fail', error, true],
  [130497, 'fail', restricted],
  [131026, 'fail', 'recipient_unreachable'],
  [131047, 'fail', 'outside_24h_window'],
  [131050, 'fail', 'marketing_opted_out'],
  [131053, 'fail', 'media_upload_failed'],
  [132000, 'fail', 'template_param_count_mismatch'],
  [132018, 'fail', 'template_param_count_mismatch'],
  [132012, 'fail', 'template_param_format_mismatch'],
  [132001, 'fail', 'template_not_found'],
  [132015, 'fail', 'template_paused'],
  [132016, 'fail', 'template_disabled'],
  ...[100, 130472, 131008, 131009, 131021, 131030, 131049, 131051, 131052, 131055, 131062].map(
    (code): [number, string, string] => [code, 'fail', error],
  ),
  ...[132005, 132007, 132068, 132069, 134011, 135000, 137000, 2593107, 987_654].map(
    (code): [number, string, string] => [code, 'fail', error],
  ),
]

test.each(rows)('code %i: %s, %s', (code, action, name, reportsAccount = false) => {
  const behaviour = behaviourOf(code)
  expect([behaviour.action, behaviour.code, behaviour.reportsAccount ?? false]).toEqual([action, name, reportsAccount])
})

test('the platform’s own word that a refusal is transient counts where the code says nothing', () => {
  expect(behaviourOf(987_654, { mayPass: true })).toMatchObject({ action: 'retry', code: error })
  expect(behaviourOf(131026, { mayPass: true })).toMatchObject({ action: 'fail' })
  expect(behaviourOf(200, { mayPass: true })).toMatchObject({ action: 'fail' })
})

test('a spam limit and a messaging limit hold the whole number back, though the message is not tried again', () => {
  expect(behaviourOf(131048).slowNumberMs).toBeGreaterThan(0)
  expect(behaviourOf(131064).slowNumberMs).toBeGreaterThan(0)
})

test('"unknown or bad request" is tried three times, maintenance once a minute', () => {
  expect(behaviourOf(1).attempts).toBe(3)
  expect(behaviourOf(131057).waitMs).toBe(60_000)
})
