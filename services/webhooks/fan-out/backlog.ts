import { isAwayFromAll, type Sql, type TransactionSql } from '@app/shared/database/database.ts'
import { each } from '@app/shared/database/each.ts'
import { startLoop } from '@app/shared/work/loop.ts'
import type { App } from '../app.ts'
import { createFailingEvents } from './failing-events.ts'
import { type EventRow, type Made, payloadsOf, recordWithin, statementBytes, statementEvents } from './record-events.ts'
import type { Recorded, Recorder } from './recorder.ts'
import { waitingOrganizations } from './waiting-organizations.ts'

const idlePollMs = 1_000
/** When another instance has the turn of the only one that waits. */
const takenPollMs = 50

/** Events that wait for the turn of their organization, in Postgres. */
export interface Backlog {
  /** Organizations of which events wait, as far as this process knows: their next ones wait behind them. */
  known: () => ReadonlySet<string>
  /** Records events; none if earlier ones of their organizations wait, of which another instance may know alone until then. */
  recordUnlessTheyWait: (rows: EventRow[]) => Promise<Recorded>
  add: (rows: EventRow[]) => Promise<void>
  stop: () => Promise<void>
}

/**
 * Organizations take turns, whatever they have: of each as much as fits into a statement, then of the next. One whose oldest
 * event cannot be recorded waits by itself until that is tried again, or given up.
 */
export function startBacklog({ sql, log }: Pick<App, 'sql' | 'log'>, { recordFirst }: Recorder): Backlog {
  const { isPaused, failed } = createFailingEvents({ sql, log })
  let waiting = new Set<string>()
  let last = ''

  async function turn() {
    const found = await sql<{ id: string }[]>`${waitingOrganizations(sql)}`
    waiting = new Set(found.map(({ id }) => id))
    const ready = [...waiting].filter((id) => !isPaused(id))
    const next = ready.find((id) => id > last) ?? ready[0]
    if (next === undefined) return idlePollMs
    last = next
    const recorded = await recordOldest(await oldest(sql, next))
    return recorded.length > 0 || ready.length > 1 ? 0 : takenPollMs
  }

  /** Where they cannot be recorded together, the first one by itself. */
  async function recordOldest(rows: EventRow[]): Promise<EventRow[]> {
    try {
      return await recordFirst(rows, recordTaken)
    } catch (err) {
      const [first, ...others] = rows
      if (isAwayFromAll(err) || !first) throw err
      if (others.length > 0) return recordOldest([first])
      await failed(first, err)
      return []
    }
  }

  const recordTaken = (rows: EventRow[]) =>
    sql.begin(async (tx) => {
      const taken = await take(tx, rows)
      return { rows: taken, made: taken.length > 0 ? await recordWithin(tx, taken) : [] }
    })

  const loop = startLoop(log, 'event backlog', turn)
  loop.wake()
  return {
    known: () => waiting,
    async recordUnlessTheyWait(rows) {
      try {
        return { rows, made: await sql.begin((tx) => recordUnless(tx, rows)) }
      } catch (err) {
        if (!(err instanceof TheyWait)) throw err
        for (const id of err.organizationIds) waiting.add(id)
        return { rows: [], made: [] }
      }
    },
    async add(rows) {
      for (const part of inParts(rows)) await insert(sql, part)
      for (const { head } of rows) waiting.add(head.organization_id)
      loop.wake()
    },
    stop: loop.stop,
  }
}

/** Takes back what was recorded. */
class TheyWait extends Error {
  readonly organizationIds: string[]
  constructor(organizationIds: string[]) {
    super('earlier events wait')
    this.organizationIds = organizationIds
  }
}

/** Asked and recorded in one round trip, for which the events of all organizations wait. */
async function recordUnless(tx: TransactionSql, rows: EventRow[]): Promise<Made[]> {
  const organizationIds = rows.map(({ head }) => head.organization_id)
  const [found, made] = await Promise.all([
    tx<{ id: string }[]>`
      select id from ${each(tx, organizationIds)} id
      where exists (select from event_backlog where organization_id = id)
    `,
    recordWithin(tx, rows),
  ])
  if (found.length > 0) throw new TheyWait(found.map(({ id }) => id))
  return made
}

async function oldest(sql: Sql, organizationId: string): Promise<EventRow[]> {
  const rows = await sql<{ head: EventRow['head']; payload: string }[]>`
    select head, payload from (
      select head, payload, sum(octet_length(payload)) over (order by seq) - octet_length(payload) as bytes_before
      from event_backlog where organization_id = ${organizationId} order by seq limit ${statementEvents}
    ) b where bytes_before < ${statementBytes}
  `
  return rows.map(({ head, payload }) => ({ head, payload: Buffer.from(payload) }))
}

/** Takes those of the rows that still wait; none while another instance has the organization's turn. */
async function take(tx: TransactionSql, rows: EventRow[]): Promise<EventRow[]> {
  const organizationId = rows[0]?.head.organization_id ?? ''
  const taken = await tx<{ eventId: string }[]>`
    with turn as materialized (select pg_try_advisory_xact_lock(hashtextextended(${`fan-out ${organizationId}`}, 0)) as mine)
    delete from event_backlog where (select mine from turn) and organization_id = ${organizationId}
      and event_id = any(${rows.map(({ head }) => head.event_id)}::text[])
    returning event_id
  `
  const ids = new Set(taken.map(({ eventId }) => eventId))
  return rows.filter(({ head }) => ids.has(head.event_id))
}

function inParts(rows: EventRow[]): EventRow[][] {
  const parts: EventRow[][] = []
  let bytes = Infinity
  for (const row of rows) {
    bytes += row.payload.length
    if (bytes > statementBytes) {
      parts.push([])
      bytes = row.payload.length
    }
    parts.at(-1)?.push(row)
  }
  return parts
}

/** An event that comes again waits once. */
const insert = (sql: Sql, rows: EventRow[]) => sql`
  insert into event_backlog (organization_id, event_id, head, payload)
  select head ->> 'organization_id', head ->> 'event_id', head, payload
  from json_to_recordset(${JSON.stringify(rows.map(({ head }, n) => ({ n: n + 1, head })))}::text::json) as u(n int, head jsonb)
    join ${payloadsOf(sql, rows)} using (n)
  order by n on conflict do nothing
`
