import { hash } from 'node:crypto'
import type { completeSetup } from '@app/shared/contracts/onboarding.ts'
import { beginSurely } from '@app/shared/database/begin-surely.ts'
import { retryWhileAway } from '@app/shared/database/retry-while-away.ts'
import type { Sql, TransactionSql } from '@app/shared/database/database.ts'
import { sealedColumn } from '@app/shared/secrets/sealed-columns.ts'
import type { z } from 'zod'

type Dialog = z.output<typeof completeSetup.body>

/**
 * One walk through the platform's dialog:
 * `begun` → `exchanging` (the code is being spent) → `exchanged` (what it bought is kept: from here on it goes on by
 * itself, whatever dies) → `connected` (account, link and customer are changed) → `done`; or `failed`, for good.
 */
export interface OnboardingRow {
  organizationId: string
  id: string
  setupLinkId: string
  step: 'begun' | 'exchanging' | 'exchanged' | 'connected' | 'done' | 'failed'
  event: Dialog['event']
  businessAccountId: string
  phoneNumberId: string | null
  sealedToken: string | null
  accountId: string | null
  /** Of who works on it, since it was claimed. */
  heldUntil: Date
  /** What was made of it: that its page asks again, once the token is there, is none. */
  attempts: number
  lastError: string | null
}

export const onboardingColumns = [
  'organization_id',
  'id',
  'setup_link_id',
  'step',
  'event',
  'business_account_id',
  'phone_number_id',
  'sealed_token',
  'account_id',
  'held_until',
  'attempts',
  'last_error',
]

/** A walk is known by the hash of its state. */
export const onboardingIdOf = (state: string): string => hash('sha256', state)

export const bindingOf = ({ id }: Pick<OnboardingRow, 'id'>): string => `onboarding:${id}`

/** What the codes of the dialog bought, until the account has it. */
export const sealedCodes = sealedColumn('sealed_token', {
  table: 'onboardings',
  rowKey: ['organization_id', 'id'],
  boundBy: 'id',
  boundTo: ([id = '']) => bindingOf({ id }),
})

/** Longer than one request works on it. */
const leaseMs = 40_000

/** Takes over what the dialog told, and the right to work on it; nothing when somebody else has it, or when it is over. */
export async function claimOnboarding(
  sql: Sql,
  { organizationId, setupLinkId, id }: Pick<OnboardingRow, 'organizationId' | 'setupLinkId' | 'id'>,
  dialog: Dialog,
): Promise<OnboardingRow | undefined> {
  const claim = (tx: TransactionSql) => tx<OnboardingRow[]>`
    update onboardings set held_until = now() + ${leaseMs} * interval '1 ms', updated_at = now(),
      attempts = attempts + case step when 'exchanged' then 0 else 1 end,
      step = case step when 'begun' then 'exchanging' else step end,
      event = coalesce(event, ${dialog.event}),
      business_account_id = coalesce(business_account_id, ${dialog.business_account_id}),
      phone_number_id = case when business_account_id is null then ${dialog.phone_number_id} else phone_number_id end
    where organization_id = ${organizationId} and id = ${id} and setup_link_id = ${setupLinkId}
      and step in ('begun', 'exchanging', 'exchanged') and held_until < now()
    returning ${tx(onboardingColumns)}
  `
  const [row] = await beginSurely(sql, claim)
  return row
}

export async function findOnboarding(
  sql: Sql,
  { organizationId, setupLinkId, id }: Pick<OnboardingRow, 'organizationId' | 'setupLinkId' | 'id'>,
): Promise<OnboardingRow | undefined> {
  const [row] = await sql<OnboardingRow[]>`
    select ${sql(onboardingColumns)} from onboardings
    where organization_id = ${organizationId} and id = ${id} and setup_link_id = ${setupLinkId}
  `
  return row
}

/** Claims those that their browsers have left, or that died with their process. */
export async function claimAbandoned(sql: Sql, count: number): Promise<OnboardingRow[]> {
  // Mostly there are none.
  const [first] = await sql`select from onboardings where ${isDue(sql)} order by due_at limit 1`
  if (!first) return []
  return beginSurely(
    sql,
    (tx) => tx<OnboardingRow[]>`
  with d as materialized (
    select organization_id, id from onboardings where ${isDue(tx)}
    order by due_at limit ${count} for update skip locked
  )
  update onboardings o set held_until = now() + ${leaseMs} * interval '1 ms', attempts = attempts + 1, updated_at = now()
  from d where o.organization_id = d.organization_id and o.id = d.id
  returning o.organization_id, o.id, o.setup_link_id, o.step, o.event, o.business_account_id, o.phone_number_id,
    o.sealed_token, o.account_id, o.held_until, o.attempts, o.last_error
`,
  )
}

const isDue = (sql: Sql | TransactionSql) => sql`due_at <= now() and held_until < now()`

/** Goes on after 5, 10, 20 … seconds, at most 10 minutes. */
const againMs = (attempts: number) => Math.min(600_000, 5_000 * 2 ** Math.min(attempts - 1, 10))

/** Whoever was frozen for longer than its lease has no say any more in a walk that was claimed since, be it by itself. */
const isStillHeld = (sql: Sql, { organizationId, id, heldUntil }: OnboardingRow) =>
  sql`organization_id = ${organizationId} and id = ${id} and held_until = ${heldUntil}`

/**
 * Lets it go for a while, because of what will pass. Without a token only the browser can go on, with its code. A database that is
 * away just now is waited for until the deadline: else nobody could go on before the lease is over.
 */
export async function putOff(sql: Sql, row: OnboardingRow, err: unknown, deadline: number): Promise<void> {
  const statement = () => sql`
    update onboardings set held_until = '-infinity', last_error = ${wordsOf(err)}, updated_at = now(),
      step = case step when 'exchanging' then 'begun' else step end,
      due_at = case when step = 'exchanging' then null else now() + ${againMs(row.attempts)} * interval '1 ms' end
    where ${isStillHeld(sql, row)}
  `
  await retryWhileAway(statement, deadline)
}

/** It ends here: the customer may walk through the dialog again. A database that is away is waited for as when it is put off. */
export async function fail(sql: Sql, row: OnboardingRow, err: unknown, deadline: number): Promise<void> {
  const statement = () => sql`
    update onboardings set step = 'failed', held_until = '-infinity', due_at = null, sealed_token = null,
      last_error = ${wordsOf(err)}, updated_at = now()
    where ${isStillHeld(sql, row)} and step not in ('connected', 'done')
  `
  await retryWhileAway(statement, deadline)
}

const wordsOf = (err: unknown) => (err instanceof Error ? err.message : String(err)).slice(0, 500)

/**
 * Forgets walks that are a month old, 5,000 at a time; answers how many. The deletion repeats the condition, since Postgres checks only its
 * own one again for a row that has changed: a walk that is just taken up stays.
 */
export async function sweepOnboardings(sql: Sql): Promise<number> {
  // Whoever was exchanging a code is dead: it would have gone on, or let it go.
  const isOver = sql`
    created_at < now() - interval '30 days' and step in ('done', 'failed', 'begun', 'exchanging') and held_until < now()
  `
  const { count } = await sql`
    delete from onboardings where (organization_id, id) in (
      select organization_id, id from onboardings where ${isOver} limit 5000
    ) and ${isOver}
  `
  return count
}
