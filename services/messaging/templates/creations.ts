import type { TransactionSql } from '@app/shared/database/database.ts'
import { newId, timeOf } from '@app/shared/values/ids.ts'
import { inlineLeaseMs } from '@app/shared/idempotency/once-inline.ts'
import { Problem } from '@app/shared/api/problem.ts'
import type { Component, Draft } from './check-components.ts'
import { isSameContent } from './same-content.ts'
import { firstStatusOf, goneWords } from './statuses.ts'
import { clockSlackMs } from './store-templates.ts'
import { type TemplateAccount, templateColumns, type TemplateRow } from './templates.ts'

export interface Wanted extends Draft {
  name: string
  language: string
}

/** The row of a creation that runs. */
export interface Creation {
  id: string
  /** What stands in the row, as the database writes it: what is read meanwhile of the status or the category changes its own. */
  knownAt: string
  statusAt: string
  categoryAt: string
  /** An earlier try was begun, and what became of it is not known: the platform is asked first. */
  isRetry: boolean
  /** Whether the platform may have the template. */
  mayExist: boolean
  /** The row was settled since the earlier try: it is the answer. */
  isSettled: boolean
}

type Known = Pick<Creation, 'id' | 'knownAt' | 'statusAt' | 'categoryAt'>

/** What the platform made of it. */
export interface Outcome {
  providerTemplateId: string
  upstreamStatus: string
  category: string
  components: readonly Component[]
}

/** A row that is pending, or that of an earlier try that nobody is at any more. */
export async function beginCreation(
  tx: TransactionSql,
  account: TemplateAccount,
  wanted: Wanted,
  isRetry: boolean,
): Promise<Creation> {
  const { organizationId, businessAccountId } = account
  const { name, language, category, format, components } = wanted
  const isOfName = tx`
    organization_id = ${organizationId} and business_account_id = ${businessAccountId} and name = ${name} and language = ${language}
  `
  await tx`delete from templates where ${isOfName} and upstream_status = any(${goneWords as string[]})`
  const times = tx`known_at::text as known_at, status_at::text as status_at, category_at::text as category_at`
  const id = newId('tmpl')
  const createdAt = timeOf(id)
  // What was told before is of an earlier template of the name, whose id cannot be told from this one's yet.
  const old = tx`clock_timestamp() - ${clockSlackMs} * interval '1 ms'`
  const [row] = await tx<Known[]>`
    insert into templates as t (organization_id, business_account_id, id, name, language, status, upstream_status, category,
      components, parameter_format, held_until, known_at, status_at, category_at, quality_at, components_at, created_at, updated_at)
    values (${organizationId}, ${businessAccountId}, ${id}, ${name}, ${language}, 'pending', 'PENDING', ${category},
      ${JSON.stringify(components)}::text::jsonb, ${format}, clock_timestamp() + ${inlineLeaseMs} * interval '1 ms',
      clock_timestamp(), ${old}, ${old}, ${old}, ${old}, ${createdAt}, ${createdAt})
    on conflict (organization_id, business_account_id, name, language) do update set
      category = excluded.category, components = excluded.components, parameter_format = excluded.parameter_format,
      held_until = excluded.held_until, known_at = excluded.known_at
      where t.provider_template_id is null and t.held_until <= now()
    returning id, ${times}
  `
  if (row) {
    // The row of this key's earlier try may be gone: another creation of the name has ended, or a sync came before the template was there.
    const mayExist = isRetry || row.id !== id
    return { ...row, isRetry: mayExist, mayExist, isSettled: false }
  }
  const [settled] = await tx<(Known & { components: Component[] })[]>`
    select id, ${times}, components from templates
    where ${isOfName} and held_until is null
  `
  // A sync or a send found the earlier try's template before we came back.
  if (isRetry && settled && isSameContent(components, settled.components)) {
    const { components: _theirs, ...known } = settled
    return { ...known, isRetry, mayExist: true, isSettled: true }
  }
  throw new Problem('template_already_exists', { param: 'name' })
}

/** What was read or told meanwhile is newer than the answer, and stays; a reading that was asked for before the answer knows less. */
export async function finishCreation(
  tx: TransactionSql,
  account: TemplateAccount,
  { id, knownAt, statusAt, categoryAt }: Creation,
  outcome: Outcome | null,
): Promise<TemplateRow> {
  const isOurs = tx`organization_id = ${account.organizationId} and id = ${id}`
  if (outcome) {
    const { providerTemplateId, upstreamStatus, category, components } = outcome
    const isUntold = tx`status_at = ${statusAt}::text::timestamptz`
    const isInCategory = tx`category_at = ${categoryAt}::text::timestamptz`
    await tx`
      update templates set provider_template_id = ${providerTemplateId}, held_until = null, known_at = clock_timestamp(),
        components = ${JSON.stringify(components)}::text::jsonb,
        status = case when ${isUntold} then ${firstStatusOf(upstreamStatus)} else status end,
        upstream_status = case when ${isUntold} then ${upstreamStatus} else upstream_status end,
        category = case when ${isInCategory} then ${category} else category end,
        status_at = greatest(status_at, ${knownAt}::text::timestamptz - ${clockSlackMs} * interval '1 ms')
      where ${isOurs}
    `
  }
  const [row] = await tx<TemplateRow[]>`select ${tx(templateColumns)} from templates where ${isOurs}`
  if (!row) throw new Error(`the template ${id} is gone from under its creation`)
  return row
}

/** After a failure. A row whose template may exist stays, without its lease: a sync, a send or a retry settles it, if none has. */
export async function leaveCreation(
  tx: TransactionSql,
  { organizationId }: TemplateAccount,
  { id, mayExist }: Creation,
): Promise<void> {
  const isOpen = tx`organization_id = ${organizationId} and id = ${id} and provider_template_id is null`
  if (mayExist) await tx`update templates set held_until = now() where ${isOpen} and held_until is not null`
  else await tx`delete from templates where ${isOpen}`
}
