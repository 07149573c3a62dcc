import { systemCaller } from '@app/shared/bus/ask.ts'
import type { Sql, TransactionSql } from '@app/shared/database/database.ts'
import { tellStates } from '../accounts/tell-states.ts'
import type { App } from '../app.ts'
import type { DueAccount } from '../health/due-account.ts'
import { lockOrganization } from '../organizations/lock-organization.ts'
import { readLink } from '../setup-links/find-link.ts'
import type { ListedNumber } from '../upstream/list-numbers.ts'
import { attachAccount } from './attach-account.ts'
import { chooseNumber } from './choose-number.ts'
import { onboardingColumns, type OnboardingRow } from './onboardings.ts'

type Waiting = Pick<DueAccount, 'organizationId' | 'id' | 'businessAccountId' | 'heldUntil'>

/**
 * Looks whether the business account of an account that waits for its number has one now that nobody has, and that its
 * organization never had: then it is onboarded. When none of its links can be used any more, it waits for nothing.
 */
export async function adoptNumber(
  app: App,
  account: Waiting,
  { token, deadline, signal }: { token: string; deadline: number; signal: AbortSignal },
): Promise<void> {
  const { organizationId, businessAccountId } = account
  const onboarding = await findOpen(app.sql, account)
  if (!onboarding) return endWaiting(app.sql, account)
  const wanted = { event: onboarding.event, phoneNumberId: null, businessAccountId }
  const number = await chooseNumber(app.upstream, wanted, { token, deadline, signal }, (numbers) =>
    withoutKnown(app.sql, organizationId, numbers),
  )
  if (number === null) return
  const caller = systemCaller(organizationId)
  const { states } = await attachAccount(app, onboarding, { number, token }, caller)
  await tellStates(app, states, caller)
}

/** The onboardings that brought an account, newest first. */
export const walksTo = (sql: Sql | TransactionSql, { organizationId, id }: Pick<Waiting, 'organizationId' | 'id'>) =>
  sql<OnboardingRow[]>`
    select ${sql(onboardingColumns)} from onboardings
    where organization_id = ${organizationId} and account_id = ${id} order by created_at desc
  `

/** The newest of them whose link may still be used, if not at the moment. */
async function findOpen(sql: Sql | TransactionSql, account: Waiting) {
  for (const onboarding of await walksTo(sql, account)) {
    const { organizationId, setupLinkId: id } = onboarding
    const { refusal } = await readLink(sql, { organizationId, id })
    if (refusal !== 'setup_link_inactive') return onboarding
  }
  return undefined
}

/** A later link takes the account up again. */
async function endWaiting(sql: Sql, account: Waiting): Promise<void> {
  await sql.begin(async (tx) => {
    await lockOrganization(tx, account.organizationId)
    if (await findOpen(tx, account)) return
    await tx`
      update accounts set attached = false, status = 'disconnected', sealed_token = null, poll_held_until = '-infinity',
        updated_at = now()
      where organization_id = ${account.organizationId} and id = ${account.id} and phone_number_id is null
        and poll_held_until = ${account.heldUntil}::timestamptz
    `
  })
}

/** A number that was detached stays so until somebody names it: a number that is waited for is a new one. */
async function withoutKnown(sql: Sql, organizationId: string, numbers: ListedNumber[]): Promise<ListedNumber[]> {
  const ids = numbers.map(({ phoneNumberId }) => phoneNumberId)
  const known = await sql<{ phoneNumberId: string }[]>`
    select phone_number_id from accounts
    where (attached or organization_id = ${organizationId}) and phone_number_id = any(${ids}::text[])
  `
  const taken = new Set(known.map(({ phoneNumberId }) => phoneNumberId))
  return numbers.filter(({ phoneNumberId }) => !taken.has(phoneNumberId))
}
