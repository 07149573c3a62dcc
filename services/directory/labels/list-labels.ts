import type { Handler } from '@app/shared/api/contract.ts'
import { listLabels as contract } from '@app/shared/contracts/labels.ts'
import { timeOf } from '@app/shared/values/ids.ts'
import { openPage } from '@app/shared/api/page.ts'
import type { App } from '../app.ts'
import { labelColumns, type LabelRow, toLabel } from './labels.ts'

export const listLabels: Handler<App, typeof contract> = async ({ sql, cursorKeys }, { query }, caller) => {
  const { limit, after, page } = openPage(cursorKeys, contract, caller, query)
  const { team_id: teamId } = query
  const rows = await sql<LabelRow[]>`
    select ${labelColumns(sql)} from labels
    where organization_id = ${caller.organizationId} and deleted_at is null
      ${teamId === undefined ? sql`` : sql`and team_id = ${teamId}`}
      ${after === null ? sql`` : sql`and (created_at, id) < (${timeOf(after)}, ${after})`}
    order by created_at desc, id desc limit ${limit + 1}
  `
  return page(rows, toLabel, ({ id }) => id)
}
