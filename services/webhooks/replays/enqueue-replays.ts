import type { Sql, TransactionSql } from '@app/shared/database/database.ts'
import { each } from '@app/shared/database/each.ts'
import { newId, timeOf } from '@app/shared/values/ids.ts'
import { startLoop } from '@app/shared/work/loop.ts'
import type { Core } from '../app.ts'
import { openDeliveries } from '../deliveries/open-deliveries.ts'
import { idsIn, type Scope } from './match-deliveries.ts'

/**
 * Deliveries of all jobs together that may wait for their first attempt: 5 % of the slots of one instance. So a replay of
 * 100,000 never stands before a new event: what it has in the queue at a time is less than an endpoint takes at once.
 */
const mostWaiting = 50
/** Of one job: half of what an endpoint takes at once. */
const mostOfJob = 5
/** Jobs a turn, each of the next organization and in a transaction of its own. */
const jobsATurn = 4
const spacingMs = 25
/** A job whose deliveries wait, because their endpoint is slow, or because it is paused or probed. */
const slowWaitMs = 50
const heldWaitMs = 5_000
const idlePollMs = 1_000

export interface Replays {
  /** Looks for jobs now. */
  wake: () => void
  stop: () => Promise<void>
}

/**
 * Enqueues the deliveries of replay jobs, a few at a time, on any instance. Organizations take turns, however many jobs they have:
 * each of its 10,000 subscriptions may have one.
 */
export function startReplays({ sql, log }: Core, wakeAttempts: () => void): Replays {
  let last = ''

  async function turn() {
    const waitMs = await untilDue(sql)
    if (waitMs > 0) return waitMs
    const waiting = await dueOrganizations(sql)
    const inTurn = [...waiting.filter((id) => id > last), ...waiting.filter((id) => id <= last)]
    for (let n = 0; n < jobsATurn; n++) {
      const next = inTurn.shift()
      if (next === undefined) break
      last = next
      const enqueued = await sql.begin((tx) => advance(tx, next))
      if (enqueued === null) continue
      if (enqueued > 0) wakeAttempts()
      inTurn.push(next)
    }
    return spacingMs
  }
  const loop = startLoop(log, 'replays', turn, { spacingMs })
  loop.wake()
  return loop
}

/** Not above 0 when a job is due. */
async function untilDue(sql: Sql) {
  const [row] = await sql<{ waitMs: number | null }[]>`
    select (extract(epoch from min(due_at) - now()) * 1000)::float8 as wait_ms from replays where finished_at is null
  `
  return Math.min(row?.waitMs ?? idlePollMs, idlePollMs)
}

/** Organizations with unfinished jobs and when their first is due, found by skipping from one to the next. */
const organizations = (sql: Sql | TransactionSql) => sql`
  with recursive o as (
    (select organization_id as id, due_at from replays where finished_at is null order by organization_id, due_at limit 1)
    union all
    select n.id, n.due_at from o cross join lateral (
      select organization_id as id, due_at from replays where finished_at is null and organization_id > o.id
      order by organization_id, due_at limit 1
    ) n
  )
`

/** Those of which a job is due, by their ids. */
async function dueOrganizations(sql: Sql): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`${organizations(sql)} select id from o where due_at <= now()`
  return rows.map(({ id }) => id)
}

interface Job extends Scope {
  id: string
  /** Of its subscription; null: it was deleted. */
  status: string | null
  /** Its lane waits, for a breaker or a `Retry-After`. */
  isHeld: boolean
}

/** Enqueues some deliveries of the organization's job that waited longest; answers how many, null when none is due. */
async function advance(tx: TransactionSql, organizationId: string): Promise<number | null> {
  const [job] = await tx<Job[]>`
    select r.id, r.organization_id, r.subscription_id, r.source, r.event_types, r.position, r.end_id,
      r.matched_at::text, (select status from subscriptions s where s.id = r.subscription_id) as status,
      exists (select from lanes l where l.id = r.subscription_id and l.paced_until > now()) as is_held
    from replays r
    where r.finished_at is null and r.organization_id = ${organizationId} and r.due_at <= now()
    order by r.due_at limit 1 for no key update of r skip locked
  `
  if (!job) return null
  if (job.status === null || job.status === 'disabled') {
    await tx`update replays set status = 'cancelled', finished_at = now() where id = ${job.id}`
    return 0
  }
  const room = await roomOf(tx, job)
  const ids = room === 0 ? [] : (await tx<{ id: string }[]>`${idsIn(tx, job, room)}`).map(({ id }) => id)
  await replay(tx, job, ids)
  const isOver = ids.length < room
  const waitMs = ids.length > 0 ? spacingMs : job.isHeld || job.status === 'paused' ? heldWaitMs : slowWaitMs
  await tx`
    update replays set status = ${isOver ? 'completed' : 'running'}, position = ${ids.at(-1) ?? job.position},
      enqueued = enqueued + ${ids.length}, finished_at = ${isOver ? tx`now()` : null},
      due_at = now() + ${waitMs} * interval '1 ms'
    where id = ${job.id}
  `
  return ids.length
}

/** How many more of the job's deliveries may wait: organizations share what may wait in all, and the jobs of one share its part. */
async function roomOf(tx: TransactionSql, { id, organizationId }: Job) {
  const [row] = await tx<{ waiting: number; jobs: number; owners: number }[]>`
    ${organizations(tx)}
    select (select count(*)::int from due_deliveries where replay_id = ${id} and not tried) as waiting,
      (select count(*)::int from replays where organization_id = ${organizationId} and finished_at is null) as jobs,
      (select count(*)::int from o) as owners
  `
  const { waiting = 0, owners = 1, jobs = 1 } = row ?? {}
  return Math.max(0, shareOf(owners, jobs) - waiting)
}

/** How many deliveries of one job may wait for their first attempt, when `owners` organizations have jobs, and its own has `jobs`. */
export const shareOf = (owners: number, jobs: number): number =>
  Math.max(1, Math.min(mostOfJob, Math.floor(mostWaiting / owners / jobs)))

async function replay(tx: TransactionSql, { id: replayId, organizationId, subscriptionId }: Job, ids: string[]) {
  if (ids.length === 0) return
  const originals = await tx<{ id: string; eventType: string; eventId: string; eventAt: Date | null }[]>`
    select d.id, d.event_type, d.event_id, d.event_at
    from ${each(tx, ids)} i cross join lateral (
      select id, event_type, event_id, event_at from deliveries where id = i limit 1
    ) d order by d.id
  `
  const deliveries = originals.map(({ id, eventType, eventId, eventAt }) => ({
    id: newId('wbd'),
    organizationId,
    subscriptionId,
    eventType,
    eventId,
    eventAt: eventAt ?? timeOf(id),
    replayedFrom: id,
    replayId,
  }))
  await openDeliveries(tx, deliveries)
}
