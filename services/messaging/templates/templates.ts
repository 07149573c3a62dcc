import type { Caller } from '@app/shared/api/contract.ts'
import type { Template } from '@app/shared/contracts/templates.ts'
import type { Sql, TransactionSql } from '@app/shared/database/database.ts'
import { notFound, Problem } from '@app/shared/api/problem.ts'
import { unsealToken } from '@app/shared/secrets/account-token.ts'
import type { z } from 'zod'
import type { Core } from '../app.ts'
import type { OwnNumber } from '../senders/own-number.ts'
import type { Component, Draft } from './check-components.ts'
import type { TemplateStatus } from './statuses.ts'
import { type ParameterFormat, variablesOf } from './variables.ts'

export interface TemplateRow {
  id: string
  name: string
  language: string
  status: TemplateStatus
  upstreamStatus: string
  category: Draft['category']
  components: Component[]
  parameterFormat: ParameterFormat
  providerTemplateId: string | null
  createdAt: Date
  updatedAt: Date
}

export const templateColumns = [
  'id',
  'name',
  'language',
  'status',
  'upstreamStatus',
  'category',
  'components',
  'parameterFormat',
  'providerTemplateId',
  'createdAt',
  'updatedAt',
] as const

/** A creation that was given up without knowing what became of it is not shown; a sync, a send or a retry settles it. */
export const isShown = (sql: Sql | TransactionSql) => sql`(held_until is null or held_until > now())`

/** The component of a type (in upper case), whatever case it is written in. */
export const componentOf = (components: readonly Component[], type: string): Component | undefined =>
  components.find((component) => String(component.type).toUpperCase() === type)

/** The text of the body. That of a template for codes is the platform's own, and shows the code. */
export function bodyOf(components: readonly Component[]): string {
  const body = componentOf(components, 'BODY')
  const text = body?.['text']
  return typeof text === 'string' ? text : body ? '{{1}}' : ''
}

export const toTemplate = (row: TemplateRow, { phoneNumber }: TemplateAccount): z.input<typeof Template> => ({
  id: row.id,
  object: 'template',
  name: row.name,
  language: row.language,
  status: row.status,
  content: bodyOf(row.components),
  variables: variablesOf(bodyOf(row.components)),
  components: row.components,
  category: row.category,
  chat_account: { phone_number: phoneNumber },
  provider_template_id: row.providerTemplateId,
  created_at: row.createdAt.toISOString(),
  updated_at: row.updatedAt.toISOString(),
})

/** The number of the path and the business account behind it, whose templates are meant. */
export interface TemplateAccount {
  organizationId: string
  phoneNumberId: string
  businessAccountId: string
  phoneNumber: string | null
  accountId: string
  sealedToken: string
  refusal: string | null
  attached: boolean
  /** Now, by the database's clock, as it writes it. */
  askedAt: string
}

/** The account of the path's number; throws when the organization has no such number. */
export async function findAccount(
  sql: Sql | TransactionSql,
  { organizationId, phoneNumberId }: OwnNumber,
): Promise<TemplateAccount> {
  const [account] = await sql<TemplateAccount[]>`
    select organization_id, phone_number_id, business_account_id, phone_number, account_id, sealed_token, refusal, attached,
      clock_timestamp()::text as asked_at
    from senders where organization_id = ${organizationId} and phone_number_id = ${phoneNumberId}
  `
  if (!account) throw notFound()
  return account
}

/**
 * How long before the caller gives up the platform's answer must be there, so that it can still be stored and told. Who waits 25 s is
 * answered within the 24 s of an instance that was told to stop meanwhile.
 */
const ownTimeMs = 3_000

/** Until when the platform may be waited for (performance.now). */
export const deadlineOf = ({ deadline }: Pick<Caller, 'deadline'>): number => deadline - ownTimeMs

/** The account and the bearer with which the platform is asked about it; a number that is disconnected has none to use. */
export async function openAccount(core: Core, number: OwnNumber): Promise<TemplateAccount & { token: string }> {
  const account = await findAccount(core.sql, number)
  if (!account.attached || account.refusal === 'account_not_connected') throw new Problem('account_not_connected')
  return { ...account, token: unsealToken(core.sealKeys, account.sealedToken, account.accountId) }
}
