import type { TransactionSql } from '@app/shared/database/database.ts'
import { z } from 'zod'
import { replaceTexts } from './replace-texts.ts'
import type { Component } from './check-components.ts'
import { statusOf } from './statuses.ts'
import { categoryOf, reasonOf } from './store-templates.ts'

/** What a callback told of the templates of a business account. */
export interface TemplateChange {
  organizationId: string
  businessAccountId: string
  field: string
  value: unknown
  /** When the platform told it. */
  at: Date
}

/** Which template. Ids beyond 2^53 come out of JSON inexact, so the name decides, and an id only where it is exact. */
const Named = z.object({
  message_template_id: z.union([z.string(), z.number()]).nullish(),
  message_template_name: z.string(),
  message_template_language: z.string(),
})

type Apply = (tx: TransactionSql, change: TemplateChange) => Promise<unknown>

const Status = Named.extend({ event: z.string(), reason: z.string().nullish().catch(null) })

const applyStatus: Apply = async (tx, change) => {
  const { event, reason, ...named } = Status.parse(change.value)
  await tx`
    update templates set status = coalesce(${statusOf(event)}, status), upstream_status = ${event},
      rejected_reason = ${reasonOf(reason)}, status_at = ${change.at}, ${heard(tx)}
    where ${isMeant(tx, change, named)} and status_at <= ${change.at}
  `
}

/** A category that is only announced (`correct_category`) changes nothing yet. */
const Category = Named.extend({ new_category: z.string().nullish() })

const applyCategory: Apply = async (tx, change) => {
  const { new_category: word, ...named } = Category.parse(change.value)
  if (word === undefined || word === null) return
  await tx`
    update templates set category = ${categoryOf(word)}, category_at = ${change.at}, ${heard(tx)}
    where ${isMeant(tx, change, named)} and category_at <= ${change.at}
  `
}

const Quality = Named.extend({ new_quality_score: z.string() })

const applyQuality: Apply = async (tx, change) => {
  const { new_quality_score: quality, ...named } = Quality.parse(change.value)
  await tx`
    update templates set quality = ${quality}, quality_at = ${change.at}, ${heard(tx)}
    where ${isMeant(tx, change, named)} and quality_at <= ${change.at}
  `
}

const applyComponents: Apply = async (tx, change) => {
  const named = Named.parse(change.value)
  const [row] = await tx<{ components: Component[] }[]>`
    select components from templates where ${isMeant(tx, change, named)} and components_at <= ${change.at} for update
  `
  if (!row) return
  const components = JSON.stringify(replaceTexts(row.components, change.value))
  await tx`
    update templates set components = ${components}::text::jsonb, components_at = ${change.at}, ${heard(tx)}
    where ${isMeant(tx, change, named)}
  `
}

const applyByField: Readonly<Record<string, Apply>> = {
  message_template_status_update: applyStatus,
  template_category_update: applyCategory,
  message_template_quality_update: applyQuality,
  message_template_components_update: applyComponents,
}

/**
 * Takes over what the platform told of a template; again, or late behind a newer one, it changes nothing. Of a template that
 * is not known here it changes nothing either, and answers false: whoever asks for it reads it whole.
 */
export async function applyTemplateChange(tx: TransactionSql, change: TemplateChange): Promise<boolean> {
  const apply = Object.hasOwn(applyByField, change.field) ? applyByField[change.field] : undefined
  await apply?.(tx, change)
  const known = await tx`select id from templates where ${isMeant(tx, change, Named.parse(change.value))}`
  return known.length > 0
}

type Named = z.output<typeof Named>

const exactIdOf = ({ message_template_id: id }: Named) => {
  if (typeof id === 'string') return id
  return Number.isSafeInteger(id) ? String(id) : null
}

/**
 * A callback of another template of the name, deleted since or somebody else's, has another id. A creation that runs, or was
 * given up, has none yet: what is told waits for it. The platform's own examples of callbacks write en-US for what is en_US
 * everywhere else.
 */
function isMeant(tx: TransactionSql, { organizationId, businessAccountId }: TemplateChange, named: Named) {
  const id = exactIdOf(named)
  return tx`
    organization_id = ${organizationId} and business_account_id = ${businessAccountId}
    and name = ${named.message_template_name}
    and replace(language, '-', '_') = replace(${named.message_template_language}, '-', '_')
    and held_until is null and (provider_template_id is null or ${id}::text is null or provider_template_id = ${id}::text)
  `
}

const heard = (tx: TransactionSql) => tx`known_at = clock_timestamp(), updated_at = now()`
