import type { Handler } from '@app/shared/api/contract.ts'
import { notFound } from '@app/shared/api/problem.ts'
import { type explainTemplate as contract, type Moment, momentAt, standing } from '@app/shared/contracts/explain.ts'
import type { Sql } from '@app/shared/database/database.ts'
import type { App } from '../app.ts'
import { doubted, goneWords, type TemplateStatus } from '../templates/statuses.ts'

export const explainTemplate: Handler<App, typeof contract> = async ({ sql }, { body: { id } }) => {
  const template = await find(sql, id)
  if (!template) throw notFound()
  return { history: [...pastOf(template), standingOf(template)] }
}

interface Template {
  organizationId: string
  businessAccountId: string
  name: string
  language: string
  category: string
  status: TemplateStatus
  upstreamStatus: string
  providerTemplateId: string | null
  rejectedReason: string | null
  quality: string | null
  /** The lease of a creation whose end is not known. */
  heldUntil: Date | null
  knownAt: Date
  createdAt: Date
  updatedAt: Date
}

async function find(sql: Sql, id: string) {
  const [found] = await sql<Template[]>`
    select t.* from (select distinct organization_id from senders) o
    cross join lateral (
      select organization_id, business_account_id, name, language, category, status, upstream_status, provider_template_id,
        rejected_reason, quality, held_until, known_at, created_at, updated_at
      from templates where organization_id = o.organization_id and id = ${id} limit 1
    ) t limit 1
  `
  return found
}

function pastOf(template: Template): Moment[] {
  const { organizationId, businessAccountId, name, language, category, knownAt, createdAt, updatedAt } = template
  const about = { organization_id: organizationId, business_account_id: businessAccountId, name, language, category }
  return [
    momentAt(createdAt, 'came to be known here: it was made through us, or found at the platform', about),
    ...(updatedAt > createdAt ? [momentAt(updatedAt, 'was changed last')] : []),
    ...(template.heldUntil ? [] : [momentAt(knownAt, 'the platform told of it last')]),
  ]
}

function standingOf(template: Template): Moment {
  const { status, upstreamStatus, providerTemplateId, rejectedReason, quality, heldUntil } = template
  return standing(wordsOf(template), {
    status,
    upstream_status: upstreamStatus,
    provider_template_id: providerTemplateId,
    ...(rejectedReason !== null && { rejected_reason: rejectedReason }),
    ...(quality !== null && { quality }),
    ...(heldUntil && { held_until: heldUntil }),
  })
}

function wordsOf({ status, upstreamStatus, rejectedReason, heldUntil }: Template): string {
  if (heldUntil) {
    return heldUntil > new Date()
      ? 'is being made: the platform has not answered yet'
      : 'was asked for, and nobody knows whether the platform took it: it is not shown until a callback, a sync or the same request tells'
  }
  if (goneWords.includes(upstreamStatus)) {
    return `is gone: the platform says ${upstreamStatus}, and sends with it are refused (template_not_approved)`
  }
  if (upstreamStatus === doubted) {
    return 'was not found by the platform for a send (132001): the next send asks for it first'
  }
  if (upstreamStatus === 'PAUSED') {
    return 'is paused by the platform for its low quality: sends with it are refused (template_paused) until that tells otherwise'
  }
  if (upstreamStatus === 'DISABLED') {
    return 'is disabled by the platform for its low quality: sends with it are refused (template_disabled)'
  }
  switch (status) {
    case 'approved':
      return 'is approved: sends with it are taken'
    case 'pending':
      return `waits for the platform (${upstreamStatus}): until it approves, sends with it are refused (template_not_approved)`
    case 'rejected': {
      const reason = rejectedReason === null ? '' : `, for ${rejectedReason}`
      return `is refused by the platform (${upstreamStatus}${reason}): sends with it are too (template_not_approved)`
    }
  }
}
