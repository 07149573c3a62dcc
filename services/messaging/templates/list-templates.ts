import type { Handler } from '@app/shared/api/contract.ts'
import { listTemplates as contract } from '@app/shared/contracts/templates.ts'
import { openPage } from '@app/shared/api/page.ts'
import type { App } from '../app.ts'
import { findAccount, isShown, templateColumns, type TemplateRow, toTemplate } from './templates.ts'

export const listTemplates: Handler<App, typeof contract> = async (app, { params, query }, caller) => {
  const { sql, cursorKeys } = app
  const { organizationId } = caller
  const { limit, after, page } = openPage(cursorKeys, contract, caller, query, params)
  const account = await findAccount(sql, { organizationId, phoneNumberId: params.phone_number_id })
  const rows = await sql<TemplateRow[]>`
    select ${sql(templateColumns)} from templates
    where organization_id = ${organizationId} and business_account_id = ${account.businessAccountId} and ${isShown(sql)}
      ${query.status === 'all' ? sql`` : sql`and status = ${query.status}`}
      ${query.language === undefined ? sql`` : sql`and language = ${query.language}`}
      ${after === null ? sql`` : sql`and id < ${after}`}
    order by id desc limit ${limit + 1}
  `
  return page(
    rows,
    (row) => toTemplate(row, account),
    ({ id }) => id,
  )
}
