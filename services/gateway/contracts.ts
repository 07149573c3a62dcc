import * as directory from '@app/shared/contracts/directory.ts'
import * as messaging from '@app/shared/contracts/messaging.ts'
import * as platform from '@app/shared/contracts/platform.ts'
import * as webhookDeliveries from '@app/shared/contracts/webhook-deliveries.ts'
import * as webhookEvents from '@app/shared/contracts/webhook-events.ts'
import * as webhookReplays from '@app/shared/contracts/webhook-replays.ts'
import * as webhooks from '@app/shared/contracts/webhooks.ts'

/** Every service's contracts: what declares `http` in them is the public API. */
export const contractModules: Record<string, object> = {
  messaging,
  directory,
  platform,
  webhooks: { ...webhooks, ...webhookDeliveries, ...webhookEvents, ...webhookReplays },
}
