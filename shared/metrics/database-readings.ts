import type { Sql } from '../database/database.ts'
import type { DataService } from '../service/service.ts'
import { type Gauges, type Reading, readings } from './readings.ts'

/** Counting ends there: a gauge costs the same however much waits. */
export const mostCounted = 10_000

const gauges: Gauges = {
  svc_outbox_waiting_events: {
    help: `Committed events that JetStream does not have yet; counted up to ${mostCounted}.`,
  },
  svc_outbox_oldest_seconds: { help: 'Age of the oldest of them; 0 when none waits.' },
  svc_dead_events: {
    help: 'Events that failed eight times and are worked on no more, by consumer.',
    labelNames: ['consumer'],
  },
  svc_database_connections: {
    help: 'Connections of all instances of the service to Postgres, by what they do.',
    labelNames: ['state'],
  },
  svc_database_server_connections: {
    help: 'Connections that the Postgres server has, of whoever to whatever database.',
  },
  svc_database_server_connections_limit: {
    help: 'How many it takes but for those that it keeps for superusers.',
  },
  svc_database_held_transactions: {
    help: 'How many transactions have begun since the oldest one whose view somebody keeps: what ended since is not cleaned up.',
  },
  svc_database_reading_seconds: {
    help: 'How long this service waited for the reading of these gauges: pool and Postgres.',
  },
}

interface Row {
  waiting: number
  oldestSeconds: number
  dead: Counted[]
  connections: Counted[]
  serverConnections: number
  serverConnectionsLimit: number
  held: number
}

/** What stands in the tables that every data service has. */
export function readDatabase({ sql, name, probes }: Pick<DataService, 'sql' | 'name' | 'probes'>): void {
  readings(probes.metrics, 'database', gauges, async () => {
    const startedAt = performance.now()
    const [row] = await sql<Row[]>`
      select
        (select count(*)::int from (
          select from outbox where published_at is null and refused is null limit ${mostCounted}
        ) o) as waiting,
        coalesce((
          select extract(epoch from now() - created_at) from outbox
          where published_at is null and refused is null order by seq limit 1
        ), 0)::float8 as oldest_seconds,
        (select coalesce(json_agg(d), '[]') from (
          select consumer as label, count(*) as count from dead_events where dead group by 1
        ) d) as dead,
        (select coalesce(json_agg(c), '[]') from (
          select coalesce(state, 'unknown') as label, count(*) as count from pg_stat_activity
          where application_name = ${name} and usename = current_user group by 1
        ) c) as connections,
        (select coalesce(sum(numbackends), 0)::int from pg_stat_database) as server_connections,
        current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
          as server_connections_limit,
        ${heldTransactions(sql)} as held
    `
    if (!row) return []
    return [
      { gauge: 'svc_outbox_waiting_events', value: row.waiting },
      { gauge: 'svc_outbox_oldest_seconds', value: row.oldestSeconds },
      ...row.dead.map(readingOf('svc_dead_events', 'consumer')),
      ...row.connections.map(readingOf('svc_database_connections', 'state')),
      { gauge: 'svc_database_server_connections', value: row.serverConnections },
      { gauge: 'svc_database_server_connections_limit', value: row.serverConnectionsLimit },
      { gauge: 'svc_database_held_transactions', value: row.held },
      { gauge: 'svc_database_reading_seconds', value: (performance.now() - startedAt) / 1_000 },
    ]
  })
}

/**
 * Of sessions with a transaction in this database, of standbys that tell theirs, of slots, and of transactions that are prepared; Postgres tells
 * this to every role. What vacuums, by itself (which has no user) or for somebody, holds up nobody.
 */
const heldTransactions = (sql: Sql) => sql`
  coalesce(greatest(
    (select max(age(backend_xmin)) from pg_stat_activity
      where usesysid is not null and coalesce(datname, current_database()) = current_database()
        and pid not in (select pid from pg_stat_progress_vacuum)),
    (select max(age(xmin)) from pg_replication_slots),
    (select max(age(transaction)) from pg_prepared_xacts where database = current_database())
  ), 0)
`

/** A row of a count by one word. */
export interface Counted {
  label: string
  count: number
}

export const readingOf =
  (gauge: string, labelName: string) =>
  ({ label, count }: Counted): Reading => ({ gauge, labels: { [labelName]: label }, value: count })
