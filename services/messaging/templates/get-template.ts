import type { Handler } from '@app/shared/api/contract.ts'
import type { getTemplate as contract } from '@app/shared/contracts/templates.ts'
import { notFound } from '@app/shared/api/problem.ts'
import type { App } from '../app.ts'
import { findAccount, isShown, templateColumns, type TemplateRow, toTemplate } from './templates.ts'

export const getTemplate: Handler<App, typeof contract> = async ({ sql }, { params, query }, { organizationId }) => {
  const account = await findAccount(sql, { organizationId, phoneNumberId: params.phone_number_id })
  const [row] = await sql<TemplateRow[]>`
    select ${sql(templateColumns)} from templates
    where organization_id = ${organizationId} and business_account_id = ${account.businessAccountId}
      and name = ${params.name} and ${isShown(sql)}
      ${query.language === undefined ? sql`` : sql`and language = ${query.language}`}
    order by id desc limit 1
  `
  if (!row) throw notFound()
  return toTemplate(row, account)
}
