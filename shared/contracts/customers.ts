import { z } from 'zod'
import { event, rpc } from '../api/contract.ts'
import type { FailureName } from '../api/problem.ts'
import { idOf } from '../values/ids.ts'
import { pageQuery } from '../api/page.ts'
import { email, phoneNumberId, text, time } from './fields.ts'
import { Account } from './platform.ts'
import { urlIn } from '../values/web-address.ts'

export const customerStatus = z.enum(['pending', 'active', 'suspended', 'archived']).meta({ id: 'CustomerStatus' })
export const setupLinkStatus = z.enum(['active', 'consumed', 'revoked', 'expired']).meta({ id: 'SetupLinkStatus' })

const metadata = z
  .record(z.string(), z.unknown())
  .refine((value) => Object.keys(value).length <= 64, 'must have at most 64 keys')
  .refine((value) => Buffer.byteLength(JSON.stringify(value)) <= 16 * 1024, 'must have at most 16 KiB as JSON')
  .meta({ description: 'Free-form: at most 64 keys, and 16 KiB as JSON.' })

/** A customer as events tell it. */
const CustomerRecord = z
  .object({
    id: idOf('cus'),
    object: z.literal('customer'),
    name: z.string(),
    status: customerStatus,
    metadata: z.record(z.string(), z.unknown()),
    archived_at: time.nullable(),
    team_id: idOf('team'),
    created_at: time,
    updated_at: time,
  })
  .meta({ id: 'CustomerRecord' })

export const Customer = CustomerRecord.extend({ email: z.string().nullable() }).meta({ id: 'Customer' })

export const SetupLink = z
  .object({
    id: idOf('csl'),
    object: z.literal('customer_setup_link'),
    customer_id: idOf('cus'),
    status: setupLinkStatus,
    token_last4: z.string(),
    expires_at: time,
    consumed_at: time.nullable(),
    success_redirect_url: z.url().nullable(),
    failure_redirect_url: z.url().nullable(),
    created_at: time,
  })
  .meta({ id: 'CustomerSetupLink' })

const exampleCustomer = {
  id: 'cus_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD',
  object: 'customer',
  name: 'Bakery Bruno',
  email: 'bruno@bakery.example',
  status: 'active',
  metadata: { plan: 'gold' },
  archived_at: null,
  team_id: 'team_01JQ8Z6V0A7XJ2N5T9WQ3RBKCF',
  created_at: '2026-03-01T12:00:00.000Z',
  updated_at: '2026-03-02T09:30:00.000Z',
}

const exampleLink = {
  id: 'csl_01JQ8Z6V0A7XJ2N5T9WQ3RBKCG',
  object: 'customer_setup_link',
  customer_id: 'cus_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD',
  status: 'active',
  token_last4: 'x7Qk',
  expires_at: '2026-03-08T12:00:00.000Z',
  consumed_at: null,
  success_redirect_url: 'https://app.example.com/connected',
  failure_redirect_url: null,
  created_at: '2026-03-01T12:00:00.000Z',
}

const tag = 'Customers'
const customerParams = z.object({ id: idOf('cus') })
const linkParams = z.object({ id: idOf('cus'), link_id: idOf('csl') })

/** What a change needs beside the entitlement: a subscription that has not lapsed. Reads need neither. */
const ofChanges: FailureName[] = ['subscription_lapsed']

export const createCustomer = rpc({
  subject: 'rpc.platform.create-customer',
  summary: 'Create a customer',
  description:
    '`team_id` is needed when the organization has several teams. The customer is `pending` until its first number is connected.',
  http: { method: 'POST', path: '/customers', status: 201, tag, feature: 'platform' },
  body: z.object({
    team_id: idOf('team').optional(),
    name: text(1, 200),
    email: email.nullable().optional(),
    metadata: metadata.nullable().optional(),
  }),
  answer: Customer,
  errors: ofChanges,
  example: {
    body: { name: 'Bakery Bruno', email: 'bruno@bakery.example', metadata: { plan: 'gold' } },
    answer: { ...exampleCustomer, status: 'pending', updated_at: exampleCustomer.created_at },
  },
})

export const listCustomers = rpc({
  subject: 'rpc.platform.list-customers',
  summary: 'List the customers',
  description:
    'Newest first, archived ones too. `search` finds a part of the name or of the e-mail address, in any case.',
  http: { method: 'GET', path: '/customers', tag },
  query: z.object({
    ...pageQuery,
    status: customerStatus.optional(),
    team_id: idOf('team').optional(),
    search: text(1, 200).optional().meta({ description: 'A piece of name or e-mail.' }),
  }),
  answer: Customer,
  list: true,
  example: { answer: exampleCustomer },
})

export const getCustomer = rpc({
  subject: 'rpc.platform.get-customer',
  summary: 'Read a customer with its numbers',
  http: { method: 'GET', path: '/customers/{id}', tag },
  params: customerParams,
  answer: Customer.extend({ accounts: z.array(Account) }).meta({ id: 'CustomerWithAccounts' }),
  example: {
    answer: {
      ...exampleCustomer,
      accounts: [
        {
          object: 'account',
          phone_number_id: '106540352242922',
          phone_number: '+15550001111',
          name: 'Bakery Bruno',
          status: 'connected',
          upstream_status: 'CONNECTED',
          customer_id: exampleCustomer.id,
        },
      ],
    },
  },
})

export const updateCustomer = rpc({
  subject: 'rpc.platform.update-customer',
  summary: 'Change, suspend or resume a customer',
  description:
    'While a customer is `suspended`, nothing is sent from its numbers: what is queued fails with `customer_suspended`, at once. `metadata` replaces the whole; null clears it, as it does `email`.',
  http: { method: 'PATCH', path: '/customers/{id}', tag, feature: 'platform' },
  params: customerParams,
  body: z.object({
    name: text(1, 200).optional(),
    email: email.nullable().optional(),
    metadata: metadata.nullable().optional(),
    status: z.enum(['active', 'suspended']).optional(),
  }),
  answer: Customer,
  errors: [...ofChanges, 'customer_archived'],
  example: { body: { status: 'suspended' }, answer: { ...exampleCustomer, status: 'suspended' } },
})

export const archiveCustomer = rpc({
  subject: 'rpc.platform.archive-customer',
  summary: 'Archive a customer',
  description:
    'Its active setup links are revoked and nothing is sent from its numbers any more; they stay attached and readable. Archiving again answers the same.',
  http: { method: 'DELETE', path: '/customers/{id}', tag, feature: 'platform' },
  params: customerParams,
  answer: Customer,
  errors: ofChanges,
  example: { answer: { ...exampleCustomer, status: 'archived', archived_at: exampleCustomer.updated_at } },
})

export const restoreCustomer = rpc({
  subject: 'rpc.platform.restore-customer',
  summary: 'Restore an archived customer: `active` if it ever had a number, else `pending`',
  body: z.object({ customer_id: idOf('cus') }),
  answer: Customer,
  errors: ['resource_not_found'],
})

const removal = {
  params: z.object({ id: idOf('cus'), phone_number_id: phoneNumberId }),
  answer: z
    .object({ customer_id: idOf('cus'), phone_number_id: phoneNumberId, removed: z.literal(true) })
    .meta({ id: 'RemovedAccount' }),
  errors: ofChanges,
  example: {
    answer: { customer_id: exampleCustomer.id, phone_number_id: '106540352242922', removed: true },
  },
} as const

export const removeCustomerAccount = rpc({
  ...removal,
  subject: 'rpc.platform.remove-customer-account',
  summary: 'Detach a number from the organization',
  description:
    'The number becomes `disconnected` and free to be connected again, here or elsewhere; what it has sent and received stays readable. Detaching again answers the same.',
  http: { method: 'DELETE', path: '/customers/{id}/chat_accounts/{phone_number_id}', tag, feature: 'platform' },
})

/** `removeCustomerAccount` under the platform's own word. */
export const removeCustomerWhatsappAccount = rpc({
  ...removal,
  subject: 'rpc.platform.remove-customer-whatsapp-account',
  summary: 'Detach a number from the organization (another name of the path)',
  http: { method: 'DELETE', path: '/customers/{id}/whatsapp_accounts/{phone_number_id}', tag, feature: 'platform' },
})

const linksTag = 'Setup links'

const redirectUrl = text(1, 2048)
  .refine(isWebUrl, 'must be an absolute http or https URL')
  .meta({ format: 'uri', description: 'Where the browser goes in the end; http or https.' })
  .nullable()
  .optional()

function isWebUrl(value: string) {
  return /^https?:\/\//i.test(value) && urlIn(value) !== null
}

export const createSetupLink = rpc({
  subject: 'rpc.platform.create-setup-link',
  summary: 'Generate a setup link',
  description: 'Answers the one-time URL in `setup_url`, this once. A suspended or archived customer gets none.',
  http: { method: 'POST', path: '/customers/{id}/setup_links', status: 201, tag: linksTag, feature: 'platform' },
  params: customerParams,
  body: z.object({
    success_redirect_url: redirectUrl,
    failure_redirect_url: redirectUrl,
    expires_in_hours: z.int().min(1).max(720).optional().meta({ description: '168 unless told otherwise.' }),
  }),
  answer: SetupLink.extend({ setup_url: z.url() }).meta({ id: 'CreatedSetupLink' }),
  errors: [...ofChanges, 'customer_suspended'],
  example: {
    body: { success_redirect_url: 'https://app.example.com/connected', expires_in_hours: 168 },
    answer: {
      ...exampleLink,
      setup_url: 'https://messaging.example.com/setup/Zp0mJbHc1S5rKq0e3oZkq0G5w5m8n2x7c9v1b3nx7Qk',
    },
  },
})

export const listSetupLinks = rpc({
  subject: 'rpc.platform.list-setup-links',
  summary: "List a customer's setup links",
  http: { method: 'GET', path: '/customers/{id}/setup_links', tag: linksTag },
  params: customerParams,
  query: z.object({ ...pageQuery, status: setupLinkStatus.optional() }),
  answer: SetupLink,
  list: true,
  example: { answer: exampleLink },
})

export const updateSetupLink = rpc({
  subject: 'rpc.platform.update-setup-link',
  summary: 'Change where an active setup link leads in the end',
  description: 'At least one of the two; null clears it.',
  http: { method: 'PATCH', path: '/customers/{id}/setup_links/{link_id}', tag: linksTag, feature: 'platform' },
  params: linkParams,
  body: z
    .object({ success_redirect_url: redirectUrl, failure_redirect_url: redirectUrl })
    .refine((body) => Object.values(body).some((value) => value !== undefined), {
      message: 'this or failure_redirect_url is required',
      path: ['success_redirect_url'],
    }),
  answer: SetupLink,
  errors: [...ofChanges, 'setup_link_inactive'],
  example: {
    body: { failure_redirect_url: 'https://app.example.com/failed' },
    answer: { ...exampleLink, failure_redirect_url: 'https://app.example.com/failed' },
  },
})

export const revokeSetupLink = rpc({
  subject: 'rpc.platform.revoke-setup-link',
  summary: 'Revoke an active setup link',
  http: { method: 'DELETE', path: '/customers/{id}/setup_links/{link_id}', tag: linksTag, feature: 'platform' },
  params: linkParams,
  answer: SetupLink,
  errors: [...ofChanges, 'setup_link_inactive'],
  example: { answer: { ...exampleLink, status: 'revoked' } },
})

const customerData = z.object({ customer: CustomerRecord }).meta({ id: 'CustomerEventData' })

export const customerCreated = event({
  subject: 'event.platform.customer-created',
  summary: 'A customer was created',
  webhook: { type: 'customer.created', source: 'svc' },
  data: customerData,
})

export const customerUpdated = event({
  subject: 'event.platform.customer-updated',
  summary: 'Name, e-mail address, metadata or status of a customer changed',
  webhook: { type: 'customer.updated', source: 'svc' },
  data: customerData,
})

export const customerArchived = event({
  subject: 'event.platform.customer-archived',
  summary: 'A customer was archived',
  webhook: { type: 'customer.archived', source: 'svc' },
  data: customerData,
})

export const customerOnboarded = event({
  subject: 'event.platform.customer-onboarded',
  summary: 'A customer connected its first number through a setup link',
  webhook: { type: 'customer.onboarded', source: 'svc' },
  data: z.object({
    customer_id: idOf('cus'),
    account_id: idOf('acc'),
    phone_number_id: phoneNumberId,
    phone_number: z.string().nullable().meta({ description: 'As people read it.', example: '+1 555 000 1111' }),
  }),
})

export const customerSetupLinkCreated = event({
  subject: 'event.platform.customer-setup-link-created',
  summary: 'A setup link was generated',
  webhook: { type: 'customer.setup_link.created', source: 'svc' },
  data: z.object({ customer_id: idOf('cus'), setup_link: SetupLink }),
})

export const customerSetupLinkConsumed = event({
  subject: 'event.platform.customer-setup-link-consumed',
  summary: 'A setup link was used',
  webhook: { type: 'customer.setup_link.consumed', source: 'svc' },
  data: z.object({
    customer_id: idOf('cus'),
    setup_link: SetupLink,
    account_id: idOf('acc'),
    // Events that were recorded before it was added have none.
    phone_number_id: phoneNumberId.optional(),
  }),
})
