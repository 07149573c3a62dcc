/**
 * What the platform's error codes mean for a send (its public error reference, v23). One table: whether to try again, whom
 * to slow down, what else follows, and the code that the message fails with.
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
  /** The number waits this long, though the message is not tried again. */
  slowNumberMs?: number
  /** The code bears on the state of the account: platform is told, which looks the number up. */
  reportsAccount?: true
}

const retry = (code: string): Behaviour => ({ action: 'retry', code })
const fail = (code: string): Behaviour => ({ action: 'fail', code })
const slowDown = (code: string): Behaviour => ({ action: 'number', code })
/** Fails, and the account is looked at. */
const account = (code: string): Behaviour => ({ action: 'fail', code, reportsAccount: true })

/** How long a number rests whose messages the platform finds too many, or too unwelcome: its limits are of hours. */
const limitedMs = 10_000

/** By the platform's code. */
export const behaviours: ReadonlyMap<number, Behaviour> = new Map<number, Behaviour>([
  // Token and permission; 3 is as final as the others, though it comes with a 500.
  [0, account('upstream_auth_failed')],
  [190, account('upstream_auth_failed')],
  [3, fail('upstream_auth_failed')],
  [10, fail('upstream_auth_failed')],
  [131005, fail('upstream_auth_failed')],
  // Passing.
  [1, { action: 'retry', code: 'upstream_unavailable', attempts: 3 }],
  [2, retry('upstream_unavailable')],
  [131000, retry('upstream_unavailable')],
  [131016, retry('upstream_unavailable')],
  [133004, retry('upstream_unavailable')],
  [131057, { action: 'retry', code: 'upstream_error', waitMs: 60_000 }],
  [2494100, retry('upstream_error')],
  // Too much, too fast.
  [4, slowDown('upstream_rate_limited')],
  [17, slowDown('upstream_rate_limited')],
  [613, slowDown('upstream_rate_limited')],
  [80007, slowDown('upstream_rate_limited')],
  [80008, slowDown('upstream_rate_limited')],
  [130429, slowDown('upstream_rate_limited')],
  [131056, { action: 'pair', code: 'upstream_rate_limited' }],
  [131048, { action: 'fail', code: 'upstream_rate_limited', slowNumberMs: limitedMs }],
  [131064, { action: 'fail', code: 'upstream_rate_limited', slowNumberMs: limitedMs }],
  // The account's own state; 131045 and 133000 come with a 500.
  [33, account('upstream_error')],
  [368, account('account_restricted')],
  [131031, account('account_restricted')],
  [131037, account('upstream_error')],
  [131042, account('billing_problem')],
  [131045, account('upstream_error')],
  [133000, account('upstream_error')],
  [133010, account('upstream_error')],
  // The recipient.
  [130472, fail('upstream_error')],
  [130497, fail('account_restricted')],
  [131021, fail('upstream_error')],
  [131026, fail('recipient_unreachable')],
  [131030, fail('upstream_error')],
  [131047, fail('outside_24h_window')],
  [131049, fail('upstream_error')],
  [131050, fail('marketing_opted_out')],
  [131062, fail('upstream_error')],
  [137000, fail('upstream_error')],
  // The message.
  [100, fail('upstream_error')],
  [131008, fail('upstream_error')],
  [131009, fail('upstream_error')],
  [131051, fail('upstream_error')],
  [131052, fail('upstream_error')],
  [131053, fail('media_upload_failed')],
  [131055, fail('upstream_error')],
  [132000, fail('template_param_count_mismatch')],
  [132001, fail('template_not_found')],
  [132005, fail('upstream_error')],
  [132007, fail('upstream_error')],
  [132012, fail('template_param_format_mismatch')],
  [132015, fail('template_paused')],
  [132016, fail('template_disabled')],
  [132018, fail('template_param_count_mismatch')],
  [132068, fail('upstream_error')],
  [132069, fail('upstream_error')],
  [134011, fail('upstream_error')],
  [135000, fail('upstream_error')],
])

/** The platform's word for all that has no code of its own. */
const invalidParameter = 100

/**
 * The behaviour for a code; 200 to 299 are permissions, a code that nobody knows fails for good. Where the code says too
 * little, what may pass is tried again.
 */
export function behaviourOf(code: number, { mayPass = false }: { mayPass?: boolean } = {}): Behaviour {
  if (code >= 200 && code <= 299) return fail('upstream_auth_failed')
  const known = behaviours.get(code)
  if (mayPass && (!known || code === invalidParameter)) return retry('upstream_error')
  return known ?? fail('upstream_error')
}
