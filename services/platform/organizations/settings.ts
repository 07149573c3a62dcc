import type { Organization } from '@app/shared/contracts/platform.ts'
import type { z } from 'zod'

export type Settings = z.output<typeof Organization>['settings']

const defaults: Settings = {
  window_check: 'strict',
  require_marketing_consent: false,
  unknown_outcome: 'fail',
  ordering: 'strict',
  message_ttl_hours: 24,
  messages_per_month: null,
}

/** All switches of an organization; a row holds only those that were set, so that one added later has its default everywhere. */
export const settingsOf = (set: Partial<Settings>): Settings => ({ ...defaults, ...set })
