import type { Handler } from '@app/shared/api/contract.ts'
import type { getWebhookReplay as contract } from '@app/shared/contracts/webhook-replays.ts'
import type { App } from '../app.ts'
import { findReplay, toReplay } from './replays.ts'

export const getWebhookReplay: Handler<App, typeof contract> = async ({ sql }, { params }, caller) =>
  toReplay(await findReplay(sql, caller.organizationId, params.id))
