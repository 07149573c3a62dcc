import { longestDue } from '../mailbox/claim-lanes.ts'
import type { DataService } from '../service/service.ts'
import { mostCounted } from './database-readings.ts'
import { type Gauges, type Reading, readings } from './readings.ts'
import { counts } from './registered.ts'

const labelNames = ['lanes']

const ownGauges: Gauges = {
  svc_mailbox_busy_items: { help: 'Items that this process works on, by table of lanes.', labelNames },
  svc_mailbox_held_lanes: { help: 'Lanes that this process holds, by table.', labelNames },
}

const gauges: Gauges = {
  svc_mailbox_waiting_lanes: {
    help: `Lanes that are due now or later (a retry, a pause), by table; counted up to ${mostCounted}.`,
    labelNames,
  },
  svc_mailbox_oldest_due_seconds: {
    help: 'For how long the lane that waits longest has been due without a holder; 0 when none is due.',
    labelNames,
  },
}

interface Busy {
  items: number
  lanes: number
}

/** Measures a mailbox. */
export function watchMailbox(app: Pick<DataService, 'sql' | 'probes'>, table: string, busy: () => Busy) {
  const { metrics } = app.probes
  const labels = { lanes: table }
  readings(metrics, `${table} here`, ownGauges, async () => [
    { gauge: 'svc_mailbox_busy_items', labels, value: busy().items },
    { gauge: 'svc_mailbox_held_lanes', labels, value: busy().lanes },
  ])
  readings(metrics, table, gauges, () => readLanes(app, table))
  const settled = counts(metrics, {
    name: 'svc_mailbox_settled_items_total',
    help: 'Items whose outcome was recorded, by table of lanes.',
    labelNames,
  })
  const rescued = counts(metrics, {
    name: 'svc_mailbox_rescued_lanes_total',
    help: 'Lanes that were found asleep beside open items, which is a mistake of ours, by table.',
    labelNames,
  })
  rescued.inc(labels, 0)
  return {
    settled: (count: number) => settled.inc(labels, count),
    rescued: (count: number) => rescued.inc(labels, count),
  }
}

/** How much waits in a table of lanes (lanes.ts). The oldest is found as the claim finds it (claim-lanes.ts), whosever it is. */
async function readLanes({ sql }: Pick<DataService, 'sql'>, table: string): Promise<Reading[]> {
  const [row] = await sql<{ waiting: number; oldestSeconds: number }[]>`
    select
      (select count(*)::int from (select from ${sql(table)} where due_at is not null limit ${mostCounted}) w) as waiting,
      coalesce((
        select extract(epoch from now() - due_at) from (${longestDue(sql, table, 1)}) l
      ), 0)::float8 as oldest_seconds
  `
  if (!row) return []
  const labels = { lanes: table }
  return [
    { gauge: 'svc_mailbox_waiting_lanes', labels, value: row.waiting },
    { gauge: 'svc_mailbox_oldest_due_seconds', labels, value: row.oldestSeconds },
  ]
}
