import type { Fragment, TransactionSql } from '@app/shared/database/database.ts'
import { newId, timeOf } from '@app/shared/values/ids.ts'
import { unread, type UpstreamTemplate } from '../upstream/templates.ts'
import { firstStatusOf, goneWords, settlingWords } from './statuses.ts'
import type { TemplateAccount } from './templates.ts'

/** The business account, and when the platform was asked about it, as the database writes it. */
type Asked = Pick<TemplateAccount, 'organizationId' | 'businessAccountId' | 'askedAt'>

const categories: Readonly<Record<string, string>> = {
  MARKETING: 'MARKETING',
  AUTHENTICATION: 'AUTHENTICATION',
  OTP: 'AUTHENTICATION',
}

/** Our three words; the older ones (TRANSACTIONAL, ACCOUNT_UPDATE …) are utilities. */
export const categoryOf = (word: string): string => categories[word.toUpperCase()] ?? 'UTILITY'

/**
 * How far the platform's clock, which its callbacks tell, may be from ours: a callback that is older than a reading by more than this
 * is older than what was read.
 */
export const clockSlackMs = 30_000

const batchRows = 200

/**
 * Takes over what the platform told of its templates. What was heard here after it was asked stays; two that store at once make no
 * row twice. Answers how many templates were new, and how many have changed.
 */
export async function storeTemplates(tx: TransactionSql, asked: Asked, found: readonly UpstreamTemplate[]) {
  const rows = rowsOf(found)
  const counts = { created: 0, updated: 0 }
  for (let n = 0; n < rows.length; n += batchRows) {
    const stored = await upsert(tx, asked, rows.slice(n, n + batchRows))
    for (const { isNew } of stored) counts[isNew ? 'created' : 'updated']++
  }
  return counts
}

/** One row a name and language, ordered so that two writers do not wait for each other in a circle. */
function rowsOf(found: readonly UpstreamTemplate[]) {
  const byKey = new Map<string, UpstreamTemplate>()
  for (const template of found) {
    if (template.status === unread) continue
    const key = `${template.name} ${template.language}`
    const other = byKey.get(key)
    // While one is being deleted its name may exist again.
    if (!other || goneWords.includes(other.status)) byKey.set(key, template)
  }
  return [...byKey]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([, template]) => {
      const id = newId('tmpl')
      return {
        id,
        created_at: timeOf(id),
        name: template.name,
        language: template.language,
        status: firstStatusOf(template.status),
        upstream_status: template.status,
        category: categoryOf(template.category),
        components: template.components,
        parameter_format: template.parameter_format?.toLowerCase() === 'named' ? 'named' : 'positional',
        provider_template_id: template.id,
        rejected_reason: reasonOf(template.rejected_reason),
        quality: template.quality_score?.score ?? null,
      }
    })
}

/** The platform writes NONE for no reason. */
export const reasonOf = (reason: string | null | undefined): string | null =>
  reason === undefined || reason === null || reason === 'NONE' ? null : reason

async function upsert(
  tx: TransactionSql,
  { organizationId, businessAccountId, askedAt }: Asked,
  rows: ReturnType<typeof rowsOf>,
) {
  // The platform writes UNKNOWN where a template made here has no score yet, which is no change.
  const scored = (quality: Fragment) => tx`nullif(${quality}, 'UNKNOWN')`
  const settled = tx`excluded.upstream_status = any(${settlingWords as string[]})`
  return tx<{ isNew: boolean }[]>`
    insert into templates as t (organization_id, business_account_id, id, name, language, status, upstream_status, category,
      components, parameter_format, provider_template_id, rejected_reason, quality, known_at, status_at, category_at,
      quality_at, components_at, created_at, updated_at)
    select ${organizationId}, ${businessAccountId}, u.id, name, language, status, upstream_status, category, components,
      parameter_format, provider_template_id, rejected_reason, quality, asked.at, old, old, old, old, u.created_at, u.created_at
    from json_to_recordset(${JSON.stringify(rows)}::text::json) as u(id text, created_at timestamptz, name text, language text,
      status text, upstream_status text, category text, components jsonb, parameter_format text, provider_template_id text,
      rejected_reason text, quality text)
    cross join (select ${askedAt}::text::timestamptz as at) asked
    cross join lateral (select asked.at - ${clockSlackMs} * interval '1 ms' as old) o
    order by name collate "C", language collate "C"
    on conflict (organization_id, business_account_id, name, language) do update set
      status = case when ${settled} then excluded.status else t.status end,
      upstream_status = excluded.upstream_status, category = excluded.category, components = excluded.components,
      parameter_format = excluded.parameter_format, provider_template_id = excluded.provider_template_id,
      rejected_reason = excluded.rejected_reason, quality = excluded.quality, held_until = null,
      known_at = excluded.known_at, status_at = greatest(t.status_at, excluded.status_at),
      category_at = greatest(t.category_at, excluded.category_at), quality_at = greatest(t.quality_at, excluded.quality_at),
      components_at = greatest(t.components_at, excluded.components_at), updated_at = now()
      where t.known_at < excluded.known_at
        and (t.upstream_status, t.category, t.components, t.parameter_format, t.provider_template_id, t.rejected_reason,
          ${scored(tx`t.quality`)})
          is distinct from (excluded.upstream_status, excluded.category, excluded.components, excluded.parameter_format,
          excluded.provider_template_id, excluded.rejected_reason, ${scored(tx`excluded.quality`)})
    returning xmax = 0 as is_new
  `
}
