import * as directory from '@app/shared/contracts/directory.ts'
import * as directoryChanges from '@app/shared/contracts/directory-changes.ts'
import * as media from '@app/shared/contracts/media.ts'
import * as messaging from '@app/shared/contracts/messaging.ts'
import * as messagingChanges from '@app/shared/contracts/messaging-changes.ts'
import * as platform from '@app/shared/contracts/platform.ts'
import * as webhooks from '@app/shared/contracts/webhooks.ts'

/** Every service's contracts: what declares `http` in them is the public API. */
export const contractModules: Record<string, object> = {
  messaging: { ...messaging, ...messagingChanges, ...media },
  directory: { ...directory, ...directoryChanges },
  platform,
  webhooks,
}
