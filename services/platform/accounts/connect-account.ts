import type { Caller, Handler, Input } from '@app/shared/api/contract.ts'
import type { connectAccount as contract } from '@app/shared/contracts/platform.ts'
import { customerUpdated } from '@app/shared/contracts/customers.ts'
import type { TransactionSql } from '@app/shared/database/database.ts'
import { newId } from '@app/shared/values/ids.ts'
import { Problem } from '@app/shared/api/problem.ts'
import { sealToken } from '@app/shared/secrets/account-token.ts'
import type { App } from '../app.ts'
import { violates } from '../constraints.ts'
import { emitCustomer, lockCustomer } from '../customers/customers.ts'
import { noteNumber } from '../customers/note-number.ts'
import { readNumber, type UpstreamNumber } from '../upstream/read-number.ts'
import { subscribeApp } from '../upstream/subscribe-app.ts'
import { recordStates, statesOf } from './account-states.ts'
import { accountColumns, type AccountRow, toAccount } from './accounts.ts'
import { findPlace } from './find-place.ts'
import { statusOf } from './status.ts'
import { tellStates } from './tell-states.ts'

/** For both questions together, so that our own caller is still there for the answer. */
const upstreamBudgetMs = 15_000

type Wanted = Input<typeof contract>['body']

/**
 * Proves the credential by reading the number with it, attaches the number, and has messaging and directory take it over
 * before it answers. The same call again renews credential and state, and attaches a detached number again.
 */
export const connectAccount: Handler<App, typeof contract> = async (app, { body }, caller) => {
  await findPlace(app.sql, body)
  const number = await askUpstream(app, body, caller)
  const { account, states } = await app.sql
    .begin((tx) => attach(app, tx, body, number, caller))
    .catch((err: unknown) => {
      throw violates(err, 'accounts_attached_number') ? new Problem('number_taken', { param: 'phone_number_id' }) : err
    })
  app.relay.wake()
  await tellStates(app, states, caller)
  return { ...toAccount(account), account_id: account.id }
}

async function askUpstream({ upstream }: App, body: Wanted, caller: Caller): Promise<UpstreamNumber> {
  const { access_token: token, phone_number_id: phoneNumberId, business_account_id: businessAccountId } = body
  const deadline = Math.min(caller.deadline, performance.now() + upstreamBudgetMs)
  const number = await readNumber(upstream, { phoneNumberId, token }, deadline)
  await subscribeApp(upstream, { businessAccountId, token }, deadline)
  return number
}

async function attach(app: App, tx: TransactionSql, body: Wanted, number: UpstreamNumber, caller: Caller) {
  const { organization_id: organizationId, phone_number_id: phoneNumberId } = body
  await tx`select id from organizations where id = ${organizationId} for no key update`
  const { teamId, customerId } = await findPlace(tx, body)
  const [known] = await tx<Pick<AccountRow, 'id' | 'status'>[]>`
    select id, status from accounts where organization_id = ${organizationId} and phone_number_id = ${phoneNumberId}
  `
  const id = known?.id ?? newId('acc')
  const status = statusOf(number.status) ?? known?.status ?? 'onboarding'
  const [account] = await tx<[AccountRow]>`
    insert into accounts as a (organization_id, id, phone_number_id, business_account_id, phone_number, name, team_id,
      customer_id, status, upstream_status, messages_per_second, sealed_token,
      returned_at, attached_at)
    values (${organizationId}, ${id}, ${phoneNumberId}, ${body.business_account_id}, ${number.phoneNumber},
      ${number.name}, ${teamId}, ${customerId}, ${status}, ${number.status}, ${number.messagesPerSecond},
      ${sealToken(app.sealKeys, body.access_token, id)}, now(),
      -- Not the time when the transaction began: it may have waited while another organization had the number.
      clock_timestamp())
    on conflict (organization_id, id) do update set
      business_account_id = excluded.business_account_id, phone_number = excluded.phone_number, name = excluded.name,
      team_id = excluded.team_id, customer_id = excluded.customer_id, status = excluded.status, upstream_status = excluded.upstream_status,
      messages_per_second = excluded.messages_per_second, sealed_token = excluded.sealed_token, attached = true, removed = false,
      reported_until = null, returned_at = excluded.returned_at, attached_at = excluded.attached_at,
      -- Who asks just now asks with the token of before: the answer is nobody's.
      poll_held_until = '-infinity', poll_at = now() + interval '1 minute',
      version = a.version + 1, updated_at = now()
    returning ${tx(accountColumns)}
  `
  if (customerId !== null) await activate(tx, organizationId, customerId, caller)
  const states = await statesOf(tx, organizationId, id)
  await recordStates(tx, states, caller)
  return { account, states }
}

/** An operator's number counts as the customer's first one; it came through no link, so nobody was onboarded. */
async function activate(tx: TransactionSql, organizationId: string, customerId: string, caller: Caller) {
  const before = await lockCustomer(tx, organizationId, customerId)
  const after = before && (await noteNumber(tx, before))
  if (after && after.status !== before.status) await emitCustomer(tx, customerUpdated, after, caller)
}
