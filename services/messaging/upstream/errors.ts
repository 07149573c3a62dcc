/**
 * What the platform's error codes mean for a send (its public error reference, v23). One table: whether to try again, whom
 * to slow down, and the code that the message fails with.
 */
export interface Behaviour {
  /** retry: within the budget of attempts; fail: at once; number: slow this number, then retry; pair: slow this recipient, then retry. */
  action: 'retry' | 'fail' | 'number' | 'pair'
  /** `Message.error.code`. */
  code: string
  /** Attempts in all, when fewer than the schedule has. */
  attempts?: number
  /** The wait before the next attempt, when the schedule's is not to be used. */
  waitMs?: number
}

const retry = (code: string): Behaviour => ({ action: 'retry', code })
const fail = (code: string): Behaviour => ({ action: 'fail', code })

const table: ReadonlyMap<number, Behaviour> = new Map<number, Behaviour>([
  [0, fail('upstream_auth_failed')],
  [1, { action: 'retry', code: 'upstream_unavailable', attempts: 3 }],
  [2, retry('upstream_unavailable')],
  [3, fail('upstream_auth_failed')],
  [4, { action: 'number', code: 'upstream_rate_limited' }],
  [10, fail('upstream_auth_failed')],
  [190, fail('upstream_auth_failed')],
  [368, fail('account_restricted')],
  [80007, { action: 'number', code: 'upstream_rate_limited' }],
  [130429, { action: 'number', code: 'upstream_rate_limited' }],
  [130497, fail('account_restricted')],
  [131000, retry('upstream_unavailable')],
  [131005, fail('upstream_auth_failed')],
  [131016, retry('upstream_unavailable')],
  [131026, fail('recipient_unreachable')],
  [131031, fail('account_restricted')],
  [131042, fail('billing_problem')],
  [131047, fail('outside_24h_window')],
  [131048, fail('upstream_rate_limited')],
  [131050, fail('marketing_opted_out')],
  [131053, fail('media_upload_failed')],
  [131056, { action: 'pair', code: 'upstream_rate_limited' }],
  [131057, { action: 'retry', code: 'upstream_error', waitMs: 60_000 }],
  [131064, fail('upstream_rate_limited')],
  [132000, fail('template_param_count_mismatch')],
  [132001, fail('template_not_found')],
  [132012, fail('template_param_format_mismatch')],
  [132015, fail('template_paused')],
  [132016, fail('template_disabled')],
  [132018, fail('template_param_count_mismatch')],
  [133004, retry('upstream_unavailable')],
  [2494100, retry('upstream_error')],
])

/** The behaviour for a code; 200 to 299 are permissions, a code that nobody knows fails for good. */
export function behaviourOf(code: number): Behaviour {
  if (code >= 200 && code <= 299) return fail('upstream_auth_failed')
  return table.get(code) ?? fail('upstream_error')
}
