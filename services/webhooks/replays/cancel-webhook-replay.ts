import type { Handler } from '@app/shared/api/contract.ts'
import { cancelWebhookReplay as contract } from '@app/shared/contracts/webhook-replays.ts'
import { once } from '@app/shared/idempotency/idempotency.ts'
import { notFound } from '@app/shared/api/problem.ts'
import type { App } from '../app.ts'
import { replayColumns, type ReplayRow, toReplay } from './replays.ts'

export const cancelWebhookReplay: Handler<App, typeof contract> = (app, { params }, caller) =>
  once(app, contract, caller, async (tx) => {
    const { organizationId } = caller
    await tx`
      update replays set status = 'cancelled', finished_at = now()
      where organization_id = ${organizationId} and id = ${params.id} and finished_at is null
    `
    const [row] = await tx<ReplayRow[]>`
      select ${replayColumns(tx)} from replays where organization_id = ${organizationId} and id = ${params.id}
    `
    if (!row) throw notFound()
    return toReplay(row)
  })
