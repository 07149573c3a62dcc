import { type Counted, mostCounted, readingOf } from '@app/shared/metrics/database-readings.ts'
import { type Gauges, readings } from '@app/shared/metrics/readings.ts'
import { counts, durations } from '@app/shared/metrics/registered.ts'
import type { Fragment, Sql } from '@app/shared/database/database.ts'
import { distinctOf } from '@app/shared/database/distinct-of.ts'
import type { DataService } from '@app/shared/service/service.ts'
import { waitingOrganizations } from './fan-out/waiting-organizations.ts'

export type Meters = ReturnType<typeof createMeters>

/** What webhooks counts while it works. */
export function createMeters({ probes: { metrics } }: Pick<DataService, 'probes'>) {
  return {
    attempts: durations(metrics, {
      name: 'svc_webhook_attempt_seconds',
      help: 'Attempts to deliver, by outcome: succeeded, failed, wait (the endpoint asks for it), gone or expired.',
      labelNames: ['outcome'],
    }),
    failures: counts(metrics, {
      name: 'svc_webhook_attempt_failures_total',
      help: "Attempts in vain, by reason: the class of the answer's status, or why there was none.",
      labelNames: ['reason'],
    }),
    dead: counts(metrics, {
      name: 'svc_webhook_dead_letters_total',
      help: 'Deliveries that were given up, by reason: exhausted (twelve tries), gone, expired (too old) or overflow (a subscription held too many).',
      labelNames: ['reason'],
      from: [['exhausted'], ['gone'], ['expired'], ['overflow']],
    }),
    delay: durations(metrics, {
      name: 'svc_webhook_delay_seconds',
      help: 'From an event to the end of the first attempt to deliver it.',
    }),
  }
}

/** Subscriptions with open deliveries that are looked at. */
const mostHolders = 10_000

const gauges: Gauges = {
  svc_webhook_subscriptions: { help: 'Subscriptions that are not active, by status.', labelNames: ['status'] },
  svc_webhook_open_deliveries: { help: `Deliveries that wait or are tried again; counted up to ${mostCounted}.` },
  svc_webhook_held_deliveries: { help: `Those of paused subscriptions; counted up to ${mostCounted}.` },
  svc_webhook_waiting_deliveries: {
    help: `Open deliveries of all other subscriptions; counted up to ${mostCounted}, however many are held.`,
  },
  svc_webhook_backlog_events: {
    help: `Events of organizations that have used up their share of the fan-out; counted up to ${mostCounted}.`,
  },
  svc_webhook_backlog_oldest_seconds: { help: 'For how long the oldest of them has waited; 0 when none waits.' },
}

/** What stands in the tables, by indexes alone. */
export function readStanding({ sql, probes }: Pick<DataService, 'sql' | 'probes'>): void {
  readings(probes.metrics, 'webhooks', gauges, async () => {
    const [row] = await sql<
      { subscriptions: Counted[]; open: number; held: number; waiting: number; backlog: number; oldest: number }[]
    >`
      with h as materialized (${holders(sql)})
      select
        (select json_agg(s) from (
          select l.status as label, count(s.id) as count
          from (values ('paused'), ('disabled')) l(status) left join subscriptions s on s.status = l.status and s.status <> 'active'
          group by 1
        ) s) as subscriptions,
        (select count(*)::int from (select from due_deliveries limit ${mostCounted}) d) as open,
        (${openOf(sql, sql`h.is_paused`)}) as held,
        (${openOf(sql, sql`not h.is_paused`)}) as waiting,
        (select count(*)::int from (select from event_backlog limit ${mostCounted}) b) as backlog,
        coalesce((
          select extract(epoch from now() - min(b.since)) from (${waitingOrganizations(sql)}) o
          cross join lateral (select since from event_backlog where organization_id = o.id order by seq limit 1) b
        ), 0)::float8 as oldest
    `
    if (!row) return []
    return [
      ...row.subscriptions.map(readingOf('svc_webhook_subscriptions', 'status')),
      { gauge: 'svc_webhook_open_deliveries', value: row.open },
      { gauge: 'svc_webhook_held_deliveries', value: row.held },
      { gauge: 'svc_webhook_waiting_deliveries', value: row.waiting },
      { gauge: 'svc_webhook_backlog_events', value: row.backlog },
      { gauge: 'svc_webhook_backlog_oldest_seconds', value: row.oldest },
    ]
  })
}

/** Subscriptions that have open deliveries, and whether they are paused. */
const holders = (sql: Sql): Fragment => sql`
  select d.id, exists (select from subscriptions s where s.id = d.id and s.status = 'paused') as is_paused
  from (${distinctOf(sql, 'due_deliveries', 'subscription_id')} limit ${mostHolders}) d
`

/** How many open deliveries the holders `h` have that are meant. */
const openOf = (sql: Sql, meant: Fragment): Fragment => sql`
  select count(*)::int from (
    select from h cross join lateral (select from due_deliveries where subscription_id = h.id limit ${mostCounted}) d
    where ${meant} limit ${mostCounted}
  ) o
`
