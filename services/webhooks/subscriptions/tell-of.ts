import type { subscriptionFailing } from '@app/shared/contracts/webhook-events.ts'
import type { TransactionSql } from '@app/shared/database/database.ts'
import { record, recorded } from '@app/shared/events/events.ts'
import type { z } from 'zod'
import { subscriptionColumns, type SubscriptionRow, toSubscription } from './subscriptions.ts'

/** One of the four operational events; their data have one shape. */
type Operational = typeof subscriptionFailing
type Reason = z.input<Operational['data']>['reason']

interface Switched {
  id: string
  /** When the row of its lane does not hold them yet. */
  failures?: number
}

/** Tells the organization's other subscriptions, never the one itself, what became of each. */
export async function tellOf(
  tx: TransactionSql,
  contract: Operational,
  switched: Switched[],
  reason: Reason,
): Promise<void> {
  if (switched.length === 0) return
  const failures = new Map(switched.map((one) => [one.id, one.failures]))
  const rows = await tx<(SubscriptionRow & { organizationId: string })[]>`
    select s.organization_id, ${subscriptionColumns(tx)} from subscriptions s
    where s.id = any(${[...failures.keys()]}) order by s.id
  `
  await record(
    tx,
    rows.map(({ organizationId, ...row }) => {
      const subscription = toSubscription({ ...row, failures: failures.get(row.id) ?? row.failures })
      return recorded(contract, { subscription, reason }, { organizationId, exceptSubscription: row.id })
    }),
  )
}

/** Whether an event tells of a subscription. */
export const isOperational = (eventType: string | undefined): boolean =>
  eventType?.startsWith('webhook.subscription.') ?? false
