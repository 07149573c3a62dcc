import type { Caller } from '@app/shared/api/contract.ts'
import type { TransactionSql } from '@app/shared/database/database.ts'
import { newId } from '@app/shared/values/ids.ts'
import { Problem } from '@app/shared/api/problem.ts'
import { sealToken } from '@app/shared/secrets/account-token.ts'
import type { AccountState } from '../accounts/account-states.ts'
import { recordStates, statesOf } from '../accounts/account-states.ts'
import { statusOf } from '../accounts/status.ts'
import type { App } from '../app.ts'
import { violates } from '../constraints.ts'
import { lockOrganization } from '../organizations/lock-organization.ts'
import { consumeLink } from '../setup-links/consume-link.ts'
import { type Link, readLink } from '../setup-links/find-link.ts'
import type { ListedNumber } from '../upstream/list-numbers.ts'
import type { OnboardingRow } from './onboardings.ts'
import { refuseUnusable } from './setups.ts'

export interface Attached {
  accountId: string
  states: AccountState[]
}

/**
 * Attaches what an onboarding brought to the link's customer, in one transaction with the link's consumption. Without a
 * number the account waits for one, and the link stays as it is.
 * @throws the link's refusal, `number_taken`
 */
export async function attachAccount(
  app: App,
  onboarding: OnboardingRow,
  { number, token }: { number: ListedNumber | null; token: string },
  caller: Caller,
): Promise<Attached> {
  const attached = await app.sql
    .begin((tx) => attach(app, tx, onboarding, { number, token }, caller))
    .catch((err: unknown) => {
      throw violates(err, 'accounts_attached_number') ? taken() : err
    })
  app.relay.wake()
  return attached
}

const taken = () => new Problem('number_taken')

async function attach(
  app: App,
  tx: TransactionSql,
  onboarding: OnboardingRow,
  { number, token }: { number: ListedNumber | null; token: string },
  caller: Caller,
): Promise<Attached> {
  const { organizationId, setupLinkId } = onboarding
  await lockOrganization(tx, organizationId)
  const link = await readLink(tx, { organizationId, id: setupLinkId })
  refuseUnusable(link)
  const accountId = await findPlace(tx, onboarding, link, number)
  await put(tx, { onboarding, link, accountId, number, sealedToken: sealToken(app.sealKeys, token, accountId) })
  if (number !== null) {
    const { phoneNumberId, phoneNumber } = number
    await consumeLink(tx, link, { accountId, phoneNumberId, phoneNumber, traceparent: caller.traceparent })
  }
  const states = await statesOf(tx, organizationId, accountId)
  await recordStates(tx, states, caller)
  await tx`
    update onboardings set step = 'connected', account_id = ${accountId}, sealed_token = null, due_at = now(),
      phone_number_id = ${number?.phoneNumberId ?? null}, updated_at = now()
    where organization_id = ${organizationId} and id = ${onboarding.id}
  `
  return { accountId, states }
}

interface Place {
  id: string
  customerId: string | null
  attached: boolean
}

/** The number's own account, else the one that waits, or waited, for one of the same business account, else a new one. */
async function findPlace(tx: TransactionSql, onboarding: OnboardingRow, link: Link, number: ListedNumber | null) {
  const { organizationId, businessAccountId } = onboarding
  const [own] = await tx<Place[]>`
    select id, customer_id, attached from accounts
    where organization_id = ${organizationId} and phone_number_id = ${number?.phoneNumberId ?? null}
  `
  if (own?.attached && own.customerId !== null && own.customerId !== link.customerId) throw taken()
  if (own) return own.id
  const [waiting] = await tx<Place[]>`
    select id, customer_id, attached from accounts
    where organization_id = ${organizationId} and customer_id = ${link.customerId} and phone_number_id is null
      and business_account_id = ${businessAccountId}
    order by attached desc, id limit 1
  `
  return waiting?.id ?? newId('acc')
}

interface Putting {
  onboarding: OnboardingRow
  link: Link
  accountId: string
  number: ListedNumber | null
  sealedToken: string
}

const firstPollMs = 10_000

async function put(tx: TransactionSql, { onboarding, link, accountId, number, sealedToken }: Putting) {
  const { organizationId, businessAccountId } = onboarding
  const told = statusOf(number?.status ?? null)
  await tx`
    insert into accounts as a (organization_id, id, phone_number_id, business_account_id, phone_number, name, team_id,
      customer_id, status, upstream_status, messages_per_second, sealed_token, poll_at, returned_at, attached_at)
    values (${organizationId}, ${accountId}, ${number?.phoneNumberId ?? null}, ${businessAccountId},
      ${number?.phoneNumber ?? null}, ${number?.name ?? null}, ${link.teamId}, ${link.customerId}, ${told ?? 'onboarding'},
      ${number?.status ?? null}, ${number?.messagesPerSecond ?? null}, ${sealedToken}, now() + ${firstPollMs} * interval '1 ms', now(), clock_timestamp())
    on conflict (organization_id, id) do update set
      phone_number_id = excluded.phone_number_id, business_account_id = excluded.business_account_id,
      phone_number = excluded.phone_number, name = excluded.name, team_id = excluded.team_id,
      customer_id = excluded.customer_id, upstream_status = excluded.upstream_status,
      -- One that sends goes on until the platform says otherwise: what is queued would fail.
      status = case when ${told === undefined} and a.attached and a.status = 'connected' then a.status else excluded.status end,
      messages_per_second = excluded.messages_per_second, sealed_token = excluded.sealed_token, attached = true, removed = false,
      -- Who asks just now, for the number that it waited for or with the token of before, lets it go.
      poll_at = excluded.poll_at, poll_held_until = '-infinity',
      reported_until = null, returned_at = excluded.returned_at, attached_at = excluded.attached_at, version = a.version + 1, updated_at = now()
  `
}
