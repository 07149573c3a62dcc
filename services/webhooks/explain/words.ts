import { breakerFailures } from '../attempts/lane-health.ts'

const disablers: Record<string, string> = {
  operator: 'the operator has disabled it',
  gone: 'its endpoint said that it is gone for good (410)',
  failing_too_long: 'it failed for days',
}

/** Who made a subscription what it is. */
export const disabledSince = (reason: string | null): string => disablers[reason ?? ''] ?? String(reason)

/** Of a subscription that has done so. */
export const pausedItself = (failures: number | null): string =>
  `has paused itself: its endpoint has failed ${failures} times in a row, and is asked now and then`

/** Why nothing is delivered to an endpoint just now; null: nothing keeps it. `failures`: of it, in a row. */
export function restOf(endpoint: { failures: number | null; pacedUntil: Date | null }): string | null {
  const { failures, pacedUntil } = endpoint
  if (pacedUntil === null || pacedUntil < new Date()) return null
  return (failures ?? 0) >= breakerFailures
    ? `its endpoint rests: it has failed ${failures} times in a row`
    : 'its endpoint rests, as it has asked for'
}
