import * as contacts from '@app/shared/contracts/contacts.ts'
import * as conversations from '@app/shared/contracts/conversations.ts'
import * as directory from '@app/shared/contracts/directory.ts'
import * as labels from '@app/shared/contracts/labels.ts'
import * as messaging from '@app/shared/contracts/messaging.ts'
import * as platform from '@app/shared/contracts/platform.ts'
import * as webhooks from '@app/shared/contracts/webhooks.ts'

/** Every service's contracts: what declares `http` in them is the public API. */
export const contractModules: Record<string, object> = {
  messaging,
  directory: { ...directory, ...contacts, ...conversations, ...labels },
  platform,
  webhooks,
}
