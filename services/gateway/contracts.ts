import * as customers from '@app/shared/contracts/customers.ts'
import * as directory from '@app/shared/contracts/directory.ts'
import * as messaging from '@app/shared/contracts/messaging.ts'
import * as onboarding from '@app/shared/contracts/onboarding.ts'
import * as platform from '@app/shared/contracts/platform.ts'
import * as templates from '@app/shared/contracts/templates.ts'
import * as webhooks from '@app/shared/contracts/webhooks.ts'

/** Every service's contracts: what declares `http` in them is the public API. */
export const contractModules: Record<string, object> = {
  messaging: { ...messaging, ...templates },
  directory,
  platform: { ...platform, ...customers, ...onboarding },
  webhooks,
}
