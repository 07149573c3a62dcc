import type { Handler } from '@app/shared/api/contract.ts'
import { listWebhookReplays as contract } from '@app/shared/contracts/webhook-replays.ts'
import { openPage } from '@app/shared/api/page.ts'
import type { App } from '../app.ts'
import { replayColumns, type ReplayRow, toReplay } from './replays.ts'

export const listWebhookReplays: Handler<App, typeof contract> = async (app, { query }, caller) => {
  const { sql } = app
  const page = openPage(app.cursorKeys, contract, caller, query)
  const rows = await sql<ReplayRow[]>`
    select ${replayColumns(sql)} from replays
    where organization_id = ${caller.organizationId}
      ${query.subscription_id ? sql`and subscription_id = ${query.subscription_id}` : sql``}
      ${page.after ? sql`and id < ${page.after}` : sql``}
    order by id desc limit ${page.limit + 1}
  `
  return page.page(rows, toReplay, ({ id }) => id)
}
