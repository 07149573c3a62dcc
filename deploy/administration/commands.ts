import type { Rpc } from '@app/shared/api/contract.ts'
import { restoreCustomer } from '@app/shared/contracts/customers.ts'
import * as directory from '@app/shared/contracts/directory.ts'
import * as messaging from '@app/shared/contracts/messaging.ts'
import * as webhooks from '@app/shared/contracts/webhooks.ts'
import { redriveCallbacks } from '@app/shared/contracts/messaging-changes.ts'
import {
  connectAccount,
  createKey,
  createMember,
  createOrganization,
  createTeam,
  disconnectAccount,
  listKeys,
  listOrganizations,
  redriveEvents,
  revokeKey,
  updateOrganization,
} from '@app/shared/contracts/platform.ts'

/**
 * How an option's text becomes a value: as it is, split at commas, as a number (`count`: with `none` for null), or as `true` and `false`. A secret is
 * read from the input where `-` is said: whoever is on the machine sees what stands on a command line.
 */
type Kind = 'text' | 'list' | 'number' | 'count' | 'boolean' | 'secret'

export interface Option {
  /** The field of the body, with a dot for one inside another. */
  field: string
  kind?: Kind
  required?: boolean
}

export interface Command {
  contract: Rpc
  /** Asked the same, beside `contract`; then the answer is a list in `data`. */
  others?: Rpc[]
  /** The field that the word after the command goes into. */
  operand?: string
  options: Record<string, Option>
}

const organization = { field: 'organization_id', required: true }
const team = { field: 'team_id' }
const phoneNumber = { field: 'phone_number_id', required: true }

const organizationOptions = {
  tier: { field: 'tier' },
  features: { field: 'features', kind: 'list' },
  subscription: { field: 'subscription' },
  'retention-days': { field: 'retention_days', kind: 'count' },
  'window-check': { field: 'settings.window_check' },
  'require-marketing-consent': { field: 'settings.require_marketing_consent', kind: 'boolean' },
  'unknown-outcome': { field: 'settings.unknown_outcome' },
  ordering: { field: 'settings.ordering' },
  'message-ttl-hours': { field: 'settings.message_ttl_hours', kind: 'number' },
  'messages-per-month': { field: 'settings.messages_per_month', kind: 'count' },
} as const

/** Every command, by its words. The service that answers checks the values. */
export const commands: Record<string, Command> = {
  'organization create': {
    contract: createOrganization,
    options: { name: { field: 'name', required: true }, ...organizationOptions },
  },
  'organization update': {
    contract: updateOrganization,
    operand: 'organization_id',
    options: { name: { field: 'name' }, ...organizationOptions },
  },
  'organization list': {
    contract: listOrganizations,
    options: { search: { field: 'search' }, after: { field: 'after' } },
  },
  'team create': {
    contract: createTeam,
    options: { organization, name: { field: 'name', required: true } },
  },
  'member create': {
    contract: createMember,
    options: {
      organization,
      team: { ...team, required: true },
      name: { field: 'name', required: true },
      email: { field: 'email', required: true },
    },
  },
  'key create': {
    contract: createKey,
    options: { organization, label: { field: 'label', required: true }, 'expires-at': { field: 'expires_at' } },
  },
  'key list': { contract: listKeys, options: { organization } },
  'key revoke': { contract: revokeKey, operand: 'key_id', options: {} },
  'customer restore': { contract: restoreCustomer, operand: 'customer_id', options: {} },
  'events redrive': {
    contract: redriveEvents,
    others: [messaging.redriveEvents, directory.redriveEvents, webhooks.redriveEvents],
    options: { since: { field: 'since', required: true } },
  },
  'webhook disable': {
    contract: webhooks.disableWebhookSubscription,
    operand: 'subscription_id',
    options: {},
  },
  'callbacks redrive': { contract: redriveCallbacks, options: { since: { field: 'since', required: true } } },
  'account connect': {
    contract: connectAccount,
    options: {
      organization,
      'phone-number-id': phoneNumber,
      'access-token': { field: 'access_token', kind: 'secret', required: true },
      'business-account-id': { field: 'business_account_id', required: true },
      team,
      customer: { field: 'customer_id' },
    },
  },
  'account disconnect': {
    contract: disconnectAccount,
    options: { organization, 'phone-number-id': phoneNumber },
  },
}
