import { z } from 'zod'
import { event, rpc } from '../api/contract.ts'
import { idOf } from '../values/ids.ts'
import { handledRangesOf } from '../events/handled-ranges.ts'
import { redriveEventsOf } from '../events/redrive.ts'
import { email, phoneNumberId, phoneParams, text, time, timeInput, upstreamId } from './fields.ts'
import { countSecretsOf, resealSecretsOf } from './secrets.ts'

export const Team = z.object({ id: idOf('team'), object: z.literal('team'), name: z.string() }).meta({ id: 'Team' })

export const Me = z
  .object({
    organization: z.object({ id: idOf('org'), object: z.literal('organization'), name: z.string() }),
    api_key: z.object({ id: idOf('key'), object: z.literal('api_key'), label: z.string(), last4: z.string() }),
    rate_limits: z.object({ tier: z.string(), write_per_minute: z.int(), read_per_minute: z.int() }),
    teams: z.array(Team),
  })
  .meta({ id: 'Me' })

export const accountStatus = z.enum(['connected', 'disconnected', 'degraded', 'onboarding'])

export const Account = z
  .object({
    object: z.literal('account'),
    phone_number_id: phoneNumberId.nullable(),
    phone_number: z.string().nullable().meta({ description: 'E.164.' }),
    name: z.string().nullable(),
    status: accountStatus,
    upstream_status: z.string().nullable().meta({ description: "The platform's own word; null if never fetched." }),
    customer_id: idOf('cus').nullable(),
  })
  .meta({ id: 'Account' })

export const tierName = z.enum(['starter', 'standard', 'pro', 'unlimited'])
export const feature = z.enum(['messaging', 'platform', 'webhooks'])

export const getMe = rpc({
  subject: 'rpc.platform.get-me',
  summary: 'Who am I',
  description: 'The organization, the key, its rate limits and the teams.',
  http: { method: 'GET', path: '/me', tag: 'Meta' },
  answer: Me,
  example: {
    answer: {
      organization: { id: 'org_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD', object: 'organization', name: 'Acme' },
      api_key: { id: 'key_01JQ8Z6V0A7XJ2N5T9WQ3RBKCE', object: 'api_key', label: 'production', last4: 'x7Qk' },
      rate_limits: { tier: 'pro', write_per_minute: 6000, read_per_minute: 60000 },
      teams: [{ id: 'team_01JQ8Z6V0A7XJ2N5T9WQ3RBKCF', object: 'team', name: 'Default' }],
    },
  },
})

export const listAccounts = rpc({
  subject: 'rpc.platform.list-accounts',
  summary: 'List the connected numbers',
  description: 'Not paginated. `status=all` shows numbers that are not connected, too.',
  http: { method: 'GET', path: '/accounts', tag: 'Accounts' },
  query: z.object({
    status: z.enum(['connected', 'all']).default('connected'),
    customer_id: idOf('cus').optional().meta({ description: 'Only the numbers of this customer.' }),
  }),
  answer: Account,
  list: true,
  example: {
    answer: {
      object: 'account',
      phone_number_id: '106540352242922',
      phone_number: '+15550001111',
      name: 'Acme Support',
      status: 'connected',
      upstream_status: 'CONNECTED',
      customer_id: null,
    },
  },
})

/** What the gateway knows of a key while it authenticates a request. */
export const authenticateKey = rpc({
  subject: 'rpc.platform.authenticate-key',
  repeatable: true,
  summary: 'Look an API key up by its hash',
  body: z.object({ key_hash: z.string().length(64).meta({ description: 'sha256 of the key, hex.' }) }),
  answer: z.object({
    state: z.enum(['valid', 'revoked', 'expired', 'unknown']),
    key_id: z.string().nullable(),
    organization_id: z.string().nullable(),
    expires_at: time.nullable(),
    tier: z.object({ name: tierName, write_per_minute: z.int(), read_per_minute: z.int() }).nullable(),
    features: z.array(feature),
    /** What GET /me answers for the key, so that it costs no second question. */
    me: Me.nullable(),
  }),
})

/** The number of the path, if it belongs to the caller's organization; else `resource_not_found`. */
export const findAccount = rpc({
  subject: 'rpc.platform.find-account',
  repeatable: true,
  summary: "Find an organization's number",
  params: phoneParams,
  answer: z.object({ account_id: idOf('acc'), phone_number_id: phoneNumberId, customer_id: idOf('cus').nullable() }),
  errors: ['resource_not_found'],
})

/** Which of the numbers are the caller's organization's, connected or not. */
export const findAccounts = rpc({
  subject: 'rpc.platform.find-accounts',
  repeatable: true,
  summary: "Find which of some numbers are an organization's",
  body: z.object({ phone_number_ids: z.array(phoneNumberId) }),
  answer: z.object({ phone_number_ids: z.array(phoneNumberId) }),
})

/** Whose key asked, if it was a valid one, and from where. */
const ApiCaller = z.object({ organization_id: z.string().nullable(), key_id: z.string().nullable(), ip: z.string() })

const requestId = z.string()

export const recordCalls = rpc({
  subject: 'rpc.platform.record-calls',
  summary: 'Keep a batch of API calls in the log',
  description:
    'As it is kept: a line of text for each call. Column by column, and kept in rows, a call cost platform, Postgres and NATS 9 µs instead of 2 (decision 0021).',
  body: z.object({
    batch: z.string().meta({ description: 'Its own name, by which it is known when it comes again.' }),
    first_request: requestId.meta({ description: 'The least request id in it.' }),
    last_request: requestId,
    began: time.meta({ description: "By the gateway's clock; the calls count their milliseconds from it." }),
    callers: z.array(ApiCaller),
    calls: z.string().meta({
      description:
        'Lines of `began took caller request status method path problem`: milliseconds after `began` (or before), microseconds, the place in `callers` from 1 on. The path is without the query string. The problem is the rest of the line: of a refused call the code of its failure and the field, as `invalid_field_value to`; of `resource_not_found` without one, what was wrong, `path` or the `id` in it.',
    }),
  }),
  answer: z.object({ recorded: z.boolean().meta({ description: 'False: it was there.' }) }),
})

/** The values of many calls, a line for each; none of them holds a line break, and an empty one is none. */
const lines = z.string()

export const recordCallBatch = rpc({
  subject: 'rpc.platform.record-call-batch',
  summary: 'Keep API calls in the log, column by column',
  description: 'Only for gateways of the version before.',
  body: z.object({
    batch: z.string().meta({ description: 'Its own name, by which it is known when it comes again.' }),
    at: lines,
    organization_id: lines,
    key_id: lines,
    request_id: lines,
    method: lines,
    path: lines.meta({ description: 'Without the query string.' }),
    status: lines,
    duration_ms: lines,
    ip: lines,
    problem: lines.default('').meta({
      description:
        'Of a refused call the code of its failure and the field: `invalid_field_value to`. Of `resource_not_found` without one, what was wrong: `path`, or the `id` in it.',
    }),
  }),
  answer: z.object({ recorded: z.int() }),
})

/** One call of the public API, as gateways of earlier versions send it. */
const ApiCall = z.object({
  at: time,
  organization_id: z.string().nullable(),
  key_id: z.string().nullable(),
  request_id: z.string(),
  method: z.string(),
  path: z.string().meta({ description: 'Without the query string.' }),
  status: z.int(),
  duration_ms: z.number(),
  ip: z.string(),
})

export const recordApiCalls = rpc({
  subject: 'rpc.platform.record-api-calls',
  summary: 'Keep API calls in the log, one by one',
  description: 'Only for gateways of earlier versions.',
  body: z.object({ calls: z.array(ApiCall).max(2000) }),
  answer: z.object({ recorded: z.int() }),
})

const settings = z.object({
  window_check: z.enum(['strict', 'upstream']),
  require_marketing_consent: z.boolean(),
  unknown_outcome: z.enum(['fail', 'resend']),
  ordering: z.enum(['strict', 'relaxed']),
  message_ttl_hours: z.int().min(1).max(720),
  /** Null: as many as it likes. */
  messages_per_month: z.int().min(0).nullable().optional(),
})

export const Organization = z.object({
  id: idOf('org'),
  object: z.literal('organization'),
  name: z.string(),
  tier: tierName,
  features: z.array(feature),
  subscription: z.enum(['active', 'lapsed']),
  retention_days: z.int().nullable(),
  settings,
  created_at: time,
})

const organizationFields = z.object({
  name: text(1, 200),
  tier: tierName.optional(),
  features: z.array(feature).optional(),
  subscription: z.enum(['active', 'lapsed']).optional(),
  retention_days: z.int().min(1).max(3650).nullable().optional(),
  settings: settings.partial().optional(),
})

export const createOrganization = rpc({
  subject: 'rpc.platform.create-organization',
  summary: 'Create an organization with its first team `Default`',
  body: organizationFields,
  answer: Organization,
})

/** With `features` or `tier` it answers 2 s after its commit: by then no gateway goes by the former ones. */
export const updateOrganization = rpc({
  subject: 'rpc.platform.update-organization',
  summary: 'Change an organization; its numbers follow at once, on every instance',
  body: organizationFields.partial().extend({ organization_id: idOf('org') }),
  answer: Organization,
  errors: ['resource_not_found'],
})

/** Newest first, a page at a time. */
export const listOrganizations = rpc({
  subject: 'rpc.platform.list-organizations',
  repeatable: true,
  summary: 'List the organizations',
  body: z.object({
    search: text(1, 200).optional().meta({ description: 'A piece of the name.' }),
    after: idOf('org').optional().meta({ description: '`next_after` of the page before.' }),
  }),
  answer: z.object({ organizations: z.array(Organization), next_after: idOf('org').nullable() }),
})

export const createTeam = rpc({
  subject: 'rpc.platform.create-team',
  summary: 'Create a team',
  body: z.object({ organization_id: idOf('org'), name: text(1, 100) }),
  answer: Team,
  errors: ['resource_not_found', 'name_taken'],
})

/** The caller's teams, for a service that was not told of one yet: events are some milliseconds late. */
export const listTeams = rpc({
  subject: 'rpc.platform.list-teams',
  repeatable: true,
  summary: 'List the teams of an organization',
  answer: z.object({ teams: z.array(z.object({ id: idOf('team'), name: z.string() })) }),
})

export const createMember = rpc({
  subject: 'rpc.platform.create-member',
  summary: 'Create a member of a team',
  body: z.object({
    organization_id: idOf('org'),
    team_id: idOf('team'),
    name: text(1, 200),
    email,
  }),
  answer: z.object({
    id: idOf('usr'),
    object: z.literal('member'),
    team_id: idOf('team'),
    name: z.string(),
    email: z.string(),
  }),
  errors: ['resource_not_found', 'name_taken'],
})

export const ApiKey = z.object({
  id: idOf('key'),
  object: z.literal('api_key'),
  organization_id: idOf('org'),
  label: z.string(),
  last4: z.string(),
  expires_at: time.nullable(),
  revoked_at: time.nullable(),
  created_at: time,
})

export const createKey = rpc({
  subject: 'rpc.platform.create-key',
  summary: 'Issue an API key; its text is answered once and stored nowhere',
  body: z.object({ organization_id: idOf('org'), label: text(1, 100), expires_at: timeInput.optional() }),
  answer: ApiKey.extend({ key: z.string() }),
  errors: ['resource_not_found'],
})

export const listKeys = rpc({
  subject: 'rpc.platform.list-keys',
  summary: 'List the API keys of an organization',
  body: z.object({ organization_id: idOf('org') }),
  answer: z.object({ keys: z.array(ApiKey) }),
  errors: ['resource_not_found'],
})

/** Answers 2 s after its commit: by then no gateway holds the key any more. */
export const revokeKey = rpc({
  subject: 'rpc.platform.revoke-key',
  summary: 'Revoke an API key, at once and for good',
  body: z.object({ key_id: idOf('key') }),
  answer: ApiKey,
  errors: ['resource_not_found'],
})

export const connectAccount = rpc({
  subject: 'rpc.platform.connect-account',
  summary: 'Connect a number with its upstream credential',
  body: z.object({
    organization_id: idOf('org'),
    phone_number_id: phoneNumberId,
    access_token: text(1, 2000),
    business_account_id: upstreamId,
    team_id: idOf('team').optional(),
    customer_id: idOf('cus').optional(),
  }),
  answer: Account.extend({ account_id: idOf('acc') }),
  errors: ['resource_not_found', 'customer_archived', 'number_taken', 'upstream_refused', 'upstream_unavailable'],
})

/** Also for a number without a customer, and one of an organization that may change nothing itself. */
export const disconnectAccount = rpc({
  subject: 'rpc.platform.disconnect-account',
  summary: 'Detach a number from its organization, so that it may be connected elsewhere',
  body: z.object({ organization_id: idOf('org'), phone_number_id: phoneNumberId }),
  answer: Account.extend({ account_id: idOf('acc') }),
  errors: ['resource_not_found'],
})

/** What messaging and directory keep of an account. A newer `version` replaces an older one, never the other way. */
export const AccountState = z.object({
  account_id: idOf('acc'),
  organization_id: idOf('org'),
  phone_number_id: phoneNumberId,
  business_account_id: z.string(),
  version: z.int(),
  phone_number: z.string().nullable(),
  name: z.string().nullable(),
  team_id: idOf('team'),
  customer: z.object({ id: idOf('cus'), name: z.string() }).nullable(),
  /** Why a send from this number is refused now; null when nothing stands against it. */
  refusal: z
    .enum([
      'account_not_connected',
      'chat_number_not_verified',
      'account_restricted',
      'customer_suspended',
      'subscription_inactive',
      'feature_not_entitled',
    ])
    .nullable(),
  /** Whether the number is still this organization's to receive for. */
  attached: z.boolean(),
  /** When the organization connected it last: of two that say it is theirs, the later one is right. */
  attached_at: time.nullable().optional(),
  /** The upstream bearer token, sealed for the account id (see seal.ts). */
  sealed_token: z.string(),
  settings,
  /** Days that the organization's messages are kept; null: for ever. */
  retention_days: z.int().nullable().optional(),
  /** What the platform takes from the number; null: its usual 80. */
  messages_per_second: z.int().min(1).nullable().optional(),
})

export const redriveEvents = redriveEventsOf('platform')

export const handledRanges = handledRangesOf('platform')

export const countSecrets = countSecretsOf('platform')

export const resealSecrets = resealSecretsOf('platform')

export const accountChanged = event({
  subject: 'event.platform.account-changed',
  summary: 'An account, its customer or its organization changed in what sends and receives depend on',
  data: AccountState,
})

export const teamChanged = event({
  subject: 'event.platform.team-changed',
  summary: 'A team was created or renamed',
  data: z.object({ team: z.object({ id: idOf('team'), name: z.string() }) }),
})

export const memberChanged = event({
  subject: 'event.platform.member-changed',
  summary: 'A member of a team was created or changed',
  data: z.object({
    member: z.object({ id: idOf('usr'), team_id: idOf('team'), name: z.string(), email: z.string() }),
  }),
})
