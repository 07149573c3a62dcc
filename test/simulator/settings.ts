import { z } from 'zod'

const Status = z.enum(['sent', 'delivered', 'read'])
const Review = z.enum(['approve', 'reject', 'hold'])

/** How the simulator behaves. */
const Settings = z.strictObject({
  /** Which statuses follow an accepted send; an empty list: none, not even a failed one. */
  statuses: z.array(Status),
  /** From the answer to the first status, and from each to the next. */
  status_delay_ms: z.int().min(0).max(60_000),
  /** How many more times each callback is sent, `status_delay_ms` apart; true is 1. */
  duplicates: z.union(
    [z.boolean().transform(Number), z.int().min(0).max(10)],
    'must be true, false or a whole number from 0 to 10',
  ),
  /** The statuses of a message come in reverse. */
  reorder: z.boolean(),
  /** Refuse free-form sends to users that did not write within 24 hours (131047). */
  enforce_window: z.boolean(),
  /** `sync`: HTTP 400; `async`: accepted, then a failed status. The platform does either. */
  window_refusal: z.enum(['sync', 'async']),
  /** Refuse (131056) more than 45 sends at once, then one per 6 s, from a number to one user. */
  pair_limit: z.boolean(),
  /** Refuse (130429) more than this many sends of one number in a second; null: as many as come. */
  throughput_per_second: z.int().min(1).nullable(),
  /** Every callback but a raw one leaves so much later, and then up to `callback_jitter_ms`, so that they overtake each other. */
  callback_delay_ms: z.int().min(0).max(600_000),
  callback_jitter_ms: z.int().min(0).max(600_000),
  /** Callbacks of a business account come only while the app is subscribed to it. */
  require_subscription: z.boolean(),
  require_proof: z.boolean(),
  /** What comes of a template that is created or edited; `hold` leaves it to a script. */
  review: Review,
  /** Of templates of these names, whatever `review` says of the others. */
  reviews: z.record(z.string(), Review),
  /** From the creation to the decision; 0: the creation answers it, and no callback comes. */
  review_delay_ms: z.int().min(0).max(600_000),
  /** How many templates a business account may create in an hour, and have in all. */
  templates_per_hour: z.int().min(0),
  template_quota: z.int().min(0),
  /** An approved template is edited once in 24 hours and ten times in 30 days. */
  template_edit_limits: z.boolean(),
  /** What the answer to a template send says of it. */
  template_message_status: z.enum(['accepted', 'held_for_quality_assessment', 'paused']),
  /** How long the URL of a file lives. */
  media_url_ttl_ms: z.int().min(0).max(3_600_000),
  /** How long a code of the signup dialog lives. */
  signup_code_ms: z.int().min(0).max(600_000),
  /** `neutral` speaks `chat`, `chat_business_account` and `chat_id`. */
  words: z.enum(['platform', 'neutral']),
})
export type Settings = z.output<typeof Settings>
export type Status = z.output<typeof Status>

/** The wire shape of `/control/settings`: what is left out stays as it is, also of `reviews`. */
export const SettingsChange = Settings.partial()
type SettingsChange = z.output<typeof SettingsChange>

const defaults: Settings = {
  statuses: ['sent', 'delivered', 'read'],
  status_delay_ms: 50,
  duplicates: 0,
  reorder: false,
  enforce_window: true,
  window_refusal: 'sync',
  pair_limit: false,
  throughput_per_second: null,
  callback_delay_ms: 0,
  callback_jitter_ms: 0,
  require_subscription: false,
  require_proof: false,
  review: 'approve',
  reviews: {},
  review_delay_ms: 500,
  templates_per_hour: 100,
  template_quota: 250,
  template_edit_limits: true,
  template_message_status: 'accepted',
  media_url_ttl_ms: 300_000,
  signup_code_ms: 30_000,
  words: 'platform',
}

export type SettingsStore = ReturnType<typeof createSettings>

/** The settings in force; `reset` goes back to those of the start. */
export function createSettings(start: SettingsChange = {}) {
  const initial: Settings = Object.assign({}, defaults, start)
  const store = {
    current: initial,
    change: (part: SettingsChange) => {
      const reviews = { ...store.current.reviews, ...part.reviews }
      store.current = Object.assign({}, store.current, part, { reviews })
    },
    reset: () => {
      store.current = initial
    },
  }
  return store
}
