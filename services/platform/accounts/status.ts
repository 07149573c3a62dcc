import type { accountStatus } from '@app/shared/contracts/platform.ts'
import type { z } from 'zod'

export type AccountStatus = z.output<typeof accountStatus>

/** The platform's words for a number, and ours. From FLAGGED and RATE_LIMITED numbers it still takes messages. */
const statuses: ReadonlyMap<string, AccountStatus> = new Map<string, AccountStatus>([
  ['CONNECTED', 'connected'],
  ['FLAGGED', 'connected'],
  ['RATE_LIMITED', 'connected'],
  ['PENDING', 'onboarding'],
  ['UNVERIFIED', 'onboarding'],
  ['RESTRICTED', 'degraded'],
  ['ACCOUNT_RESTRICTION', 'degraded'],
  ['DISCONNECTED', 'disconnected'],
  ['BANNED', 'disconnected'],
  ['DELETED', 'disconnected'],
  ['MIGRATED', 'disconnected'],
])

/** Undefined for a word that says nothing, such as UNKNOWN: then the account stays as it is. */
export const statusOf = (upstreamStatus: string | null): AccountStatus | undefined =>
  upstreamStatus === null ? undefined : statuses.get(upstreamStatus)
