import * as contacts from '@app/shared/contracts/contacts.ts'
import * as conversations from '@app/shared/contracts/conversations.ts'
import * as customers from '@app/shared/contracts/customers.ts'
import * as directory from '@app/shared/contracts/directory.ts'
import * as directoryChanges from '@app/shared/contracts/directory-changes.ts'
import * as labels from '@app/shared/contracts/labels.ts'
import * as media from '@app/shared/contracts/media.ts'
import * as messaging from '@app/shared/contracts/messaging.ts'
import * as messagingChanges from '@app/shared/contracts/messaging-changes.ts'
import * as onboarding from '@app/shared/contracts/onboarding.ts'
import * as platform from '@app/shared/contracts/platform.ts'
import * as templates from '@app/shared/contracts/templates.ts'
import * as webhookDeliveries from '@app/shared/contracts/webhook-deliveries.ts'
import * as webhookEvents from '@app/shared/contracts/webhook-events.ts'
import * as webhookReplays from '@app/shared/contracts/webhook-replays.ts'
import * as webhooks from '@app/shared/contracts/webhooks.ts'

/** Every service's contracts: what declares `http` in them is the public API. */
export const contractModules: Record<string, object> = {
  messaging: { ...messaging, ...messagingChanges, ...templates, ...media },
  directory: { ...directory, ...contacts, ...conversations, ...labels, ...directoryChanges },
  platform: { ...platform, ...customers, ...onboarding },
  webhooks: { ...webhooks, ...webhookDeliveries, ...webhookEvents, ...webhookReplays },
}
