import { z } from 'zod'
import { rpc } from '../api/contract.ts'
import { idOf } from '../values/ids.ts'
import { phoneNumberId, phoneParams, time, upstreamId } from './fields.ts'
import { Account } from './platform.ts'

export const registerNumber = rpc({
  subject: 'rpc.platform.register-number',
  summary: 'Register a number',
  description:
    "Finishes the onboarding of a number with its two-step verification PIN; where it has none yet, this PIN becomes it. A number that is connected already is answered as it is, and so is one that stays in the phone's app, which is never registered. The platform takes 10 attempts in 72 hours.",
  http: { method: 'POST', path: '/{phone_number_id}/register', tag: 'Accounts', asksOutside: true },
  params: phoneParams,
  body: z.object({
    pin: z
      .string()
      .regex(/^\d{6}$/, 'must be 6 digits')
      .meta({ description: '6 digits.' }),
    data_localization_region: z
      .string()
      .regex(/^[A-Z]{2}$/, 'must be a country code of two capitals')
      .optional()
      .meta({ description: 'Where the platform stores data at rest, such as `DE`.' }),
  }),
  answer: Account,
  errors: [
    'resource_not_found',
    'account_not_connected',
    'registration_failed',
    'upstream_refused',
    'rate_limit_exceeded',
    'upstream_unavailable',
  ],
  example: {
    body: { pin: '482916' },
    answer: {
      object: 'account',
      phone_number_id: '106540352242922',
      phone_number: '+15550001111',
      name: 'Acme Support',
      status: 'connected',
      upstream_status: 'CONNECTED',
      customer_id: 'cus_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD',
    },
  },
})

/** Whether a setup link can be used now; `refused`: its customer is archived or suspended, or the organization may not. */
const linkState = z.enum(['active', 'consumed', 'expired', 'revoked', 'refused'])

const connectedNumber = z.object({
  phone_number_id: phoneNumberId.nullable(),
  /** As people read it. */
  phone_number: z.string().nullable(),
  name: z.string().nullable(),
  /** False: the organization has to register it first. */
  registered: z.boolean(),
})

/** What the hosted page behind a setup link shows. */
export const getSetup = rpc({
  subject: 'rpc.platform.get-setup',
  repeatable: true,
  summary: 'Look a setup link up by its token',
  body: z.object({ token: z.string().max(200) }),
  answer: z.object({
    setup_link_id: idOf('csl'),
    state: linkState,
    organization_name: z.string(),
    customer_name: z.string(),
    expires_at: time,
    /** Where the page leads back to, with the ids and the status as query parameters. */
    success_url: z.string().nullable(),
    cancelled_url: z.string().nullable(),
    failed_url: z.string().nullable(),
    /** What was connected through it, when it is consumed. */
    number: connectedNumber.nullable(),
  }),
  errors: ['resource_not_found'],
})

/** Begins an onboarding: its `state` goes through the platform's dialog and comes back with the dialog's result. */
export const beginSetup = rpc({
  subject: 'rpc.platform.begin-setup',
  // What is begun twice is walked through once.
  repeatable: true,
  summary: 'Begin an onboarding',
  body: z.object({ token: z.string().max(200), setup_link_id: idOf('csl') }),
  answer: z.object({ state: z.string() }),
  errors: ['resource_not_found', 'setup_link_inactive', 'customer_suspended', 'rate_limit_exceeded'],
})

/**
 * Takes the dialog's result. The same call again goes on where the first one came to: the code is spent once, and what it
 * bought is kept.
 */
export const completeSetup = rpc({
  subject: 'rpc.platform.complete-setup',
  summary: "Take the result of the platform's dialog",
  body: z.object({
    token: z.string().max(200),
    state: z.string().max(200),
    code: z.string().min(1).max(4000),
    business_account_id: upstreamId,
    /** Null when the dialog made a business account alone, or told no number. */
    phone_number_id: upstreamId.nullable(),
    /** `business_app`: the number stays in the phone's app, too, and is not registered. */
    event: z.enum(['number', 'account_only', 'business_app']),
  }),
  answer: z.object({ number: connectedNumber, success_url: z.string().nullable() }),
  errors: [
    'resource_not_found',
    'setup_link_inactive',
    'customer_suspended',
    'setup_in_progress',
    'number_taken',
    'upstream_refused',
    'upstream_unavailable',
  ],
})
