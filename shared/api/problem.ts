/** The `type` words of the error envelope (public API, section 7). */
type FailureType =
  | 'invalid_request_error'
  | 'authentication_error'
  | 'permission_error'
  | 'not_found'
  | 'conflict'
  | 'rate_limit_error'
  | 'api_error'

interface Failure {
  status: number
  type: FailureType
  /** The public code; two failures may share one. */
  code: string
  message: string
}

const invalid = (status: number, code: string, message: string): Failure => ({
  status,
  type: 'invalid_request_error',
  code,
  message,
})
const unauthenticated = (code: string, message: string): Failure => ({
  status: 401,
  type: 'authentication_error',
  code,
  message,
})
const forbidden = (code: string, message: string): Failure => ({ status: 403, type: 'permission_error', code, message })
const conflict = (code: string, message: string): Failure => ({ status: 409, type: 'conflict', code, message })
const ours = (status: number, code: string, message: string): Failure => ({ status, type: 'api_error', code, message })

/** Every failure a caller may see, declared once: handlers throw it, the bus carries it, the OpenAPI lists it. */
export const failures = {
  invalid_field_value: invalid(400, 'invalid_field_value', 'A field value is invalid.'),
  invalid_phone_number: invalid(
    400,
    'invalid_phone_number',
    'The phone number is not a possible international number: write it with + and country code.',
  ),
  invalid_limit: invalid(400, 'invalid_limit', 'limit must be a whole number from 1 to 100.'),
  invalid_cursor: invalid(400, 'invalid_cursor', 'The cursor is malformed, modified or belongs to another filter set.'),
  missing_api_key: unauthenticated('missing_api_key', 'Send your API key as "Authorization: Bearer <API_KEY>".'),
  invalid_api_key: unauthenticated(
    'invalid_api_key',
    'The API key is not valid: send it whole, as "Authorization: Bearer <API_KEY>".',
  ),
  revoked_api_key: unauthenticated('revoked_api_key', 'The API key was revoked.'),
  expired_api_key: unauthenticated('expired_api_key', 'The API key has expired.'),
  feature_not_entitled: forbidden('feature_not_entitled', 'The organization is not entitled to this feature.'),
  subscription_lapsed: forbidden('subscription_inactive', 'The subscription of the organization is not active.'),
  resource_not_found: {
    status: 404,
    type: 'not_found',
    code: 'resource_not_found',
    message: 'No such resource: look at the method, the path and the ids.',
  },
  request_timeout: invalid(408, 'request_timeout', 'The request did not arrive in time.'),
  idempotency_in_progress: conflict('idempotency_in_progress', 'A request with this Idempotency-Key is still running.'),
  setup_in_progress: conflict('setup_in_progress', 'The number is being connected.'),
  name_taken: conflict('name_taken', 'The name is already in use.'),
  template_already_exists: conflict(
    'template_already_exists',
    'A template of this name and language exists already, or is still being deleted.',
  ),
  template_not_editable: conflict(
    'template_not_editable',
    'A template whose review is pending, or that the platform has no more, cannot be edited.',
  ),
  number_taken: conflict('phone_number_taken', 'The number is connected to another organization or customer.'),
  label_already_exists: conflict('label_already_exists', 'The team has a label of that name.'),
  contact_identity_conflict: conflict(
    'contact_identity_conflict',
    'The phone number and the bsuid belong to two different contacts.',
  ),
  customer_archived: conflict('customer_archived', 'The customer is archived.'),
  setup_link_inactive: conflict('setup_link_inactive', 'The setup link is consumed, revoked or expired.'),
  webhook_subscription_disabled: conflict('webhook_subscription_disabled', 'The webhook subscription is disabled.'),
  last_secret: conflict('last_secret', 'One signing secret without an expiry must remain: create another one first.'),
  too_many_secrets: conflict('too_many_secrets', 'A subscription has at most five active signing secrets.'),
  too_many_webhook_subscriptions: conflict(
    'too_many_webhook_subscriptions',
    'An organization has at most 10,000 webhook subscriptions.',
  ),
  delivery_pending: conflict('delivery_pending', 'The delivery is still waiting for its first attempt.'),
  payload_expired: conflict('payload_expired', 'The payload is no longer kept, so that it cannot be sent again.'),
  replay_in_progress: conflict('replay_in_progress', 'A replay of this subscription is still running.'),
  payload_too_large: invalid(413, 'payload_too_large', 'The request body is too large.'),
  uri_too_long: invalid(414, 'uri_too_long', 'The request path or query is too long.'),
  unsupported_media_type: invalid(415, 'unsupported_media_type', 'Send the body as application/json.'),
  headers_too_large: invalid(431, 'headers_too_large', 'The request headers are too large.'),
  idempotency_key_reuse: invalid(422, 'idempotency_key_reuse', 'The Idempotency-Key was used with another request.'),
  chat_number_not_verified: invalid(422, 'chat_number_not_verified', 'The number is not verified and registered yet.'),
  account_not_connected: invalid(422, 'account_not_connected', 'The number is not connected.'),
  account_restricted: invalid(422, 'account_restricted', 'The platform restricts sends from this number.'),
  marketing_opted_out: invalid(422, 'marketing_opted_out', 'The recipient opted out of marketing messages.'),
  consent_required: invalid(422, 'consent_required', 'The recipient has not consented to marketing messages.'),
  customer_suspended: invalid(422, 'customer_suspended', 'The customer is suspended or archived.'),
  outside_24h_window: invalid(
    422,
    'outside_24h_window',
    'The recipient has not written in the last 24 hours: send a template.',
  ),
  quota_used_up: invalid(422, 'invalid_request', 'The messages that the plan allows this month are used up.'),
  subscription_inactive: invalid(422, 'subscription_inactive', 'The subscription of the organization is not active.'),
  template_not_found: invalid(422, 'template_not_found', 'There is no such template in this language.'),
  template_not_approved: invalid(422, 'template_not_approved', 'The template is not approved.'),
  template_paused: invalid(422, 'template_paused', 'The platform paused the template for its low quality.'),
  template_disabled: invalid(422, 'template_disabled', 'The platform disabled the template for its low quality.'),
  template_param_count_mismatch: invalid(
    422,
    'template_param_count_mismatch',
    'The number of parameters differs from that of the template.',
  ),
  template_param_format_mismatch: invalid(
    422,
    'template_param_format_mismatch',
    'A parameter is of another kind than the template has.',
  ),
  media_upload_failed: invalid(422, 'media_upload_failed', 'The media could not be fetched or uploaded.'),
  registration_failed: invalid(422, 'registration_failed', 'The platform did not register the number.'),
  upstream_refused: invalid(422, 'upstream_error', 'The upstream platform refused the request.'),
  rate_limit_exceeded: {
    status: 429,
    type: 'rate_limit_error',
    code: 'rate_limit_exceeded',
    message: 'The rate limit is used up.',
  },
  internal_error: ours(500, 'internal_error', 'Something went wrong on our side.'),
  upstream_unavailable: ours(502, 'upstream_error', 'The upstream platform did not answer properly.'),
  service_unavailable: ours(503, 'service_unavailable', 'The service is not available at the moment: try again.'),
} as const satisfies Record<string, Failure>

export type FailureName = keyof typeof failures

export interface ProblemDetails extends ErrorOptions {
  /** The offending field of the request, such as `interactive.action.buttons[1].reply.title`. */
  param?: string | undefined
  /** Replaces the table's message. */
  message?: string | undefined
  /** Whole seconds for the header `Retry-After`. */
  retryAfterSeconds?: number | undefined
}

/** A failure that a caller may see. Anything else that is thrown becomes `internal_error`. */
export class Problem extends Error {
  override readonly name = 'Problem'
  readonly failure: FailureName
  readonly param: string | undefined
  readonly retryAfterSeconds: number | undefined

  constructor(failure: FailureName, { param, message, retryAfterSeconds, cause }: ProblemDetails = {}) {
    super(message ?? failures[failure].message, { cause })
    this.failure = failure
    this.param = param
    this.retryAfterSeconds = retryAfterSeconds ?? (failures[failure].status === 503 ? 1 : undefined)
  }

  get status(): number {
    return failures[this.failure].status
  }

  get code(): string {
    return failures[this.failure].code
  }

  /** The error envelope of the public API. */
  toEnvelope(requestId: string) {
    const { type, code } = failures[this.failure]
    return {
      error: { type, code, message: this.message, ...(this.param && { param: this.param }), request_id: requestId },
    }
  }
}

/** What was thrown, as a problem: its own kind as it is, anything else as `internal_error` with the cause for the log. */
export function toProblem(err: unknown): Problem {
  return err instanceof Problem ? err : new Problem('internal_error', { cause: err })
}

/** `param` where the body has the id; without one it is in the path. */
export const notFound = (param?: string) => new Problem('resource_not_found', { param })
export const invalidField = (param: string, message: string) => new Problem('invalid_field_value', { param, message })
