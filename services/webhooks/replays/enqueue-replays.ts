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
/** Jobs a turn, each in a transaction of its own. */
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

/** Enqueues the deliveries of replay jobs, a few at a time, on any instance. */
export function startReplays({ sql, log }: Core, wakeAttempts: () => void): Replays {
  async function turn() {
    const waitMs = await untilDue(sql)
    if (waitMs > 0) return waitMs
    for (let n = 0; n < jobsATurn; n++) {
      const enqueued = await sql.begin(advance)
      if (enqueued === null) break
      if (enqueued > 0) wakeAttempts()
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

interface Job extends Scope {
  id: string
  /** Of its subscription; null: it was deleted. */
  status: string | null
  /** Its lane waits, for a breaker or a `Retry-After`. */
  isHeld: boolean
}

/** Enqueues some deliveries of the job that waited longest; answers how many, null when no job is due. */
async function advance(tx: TransactionSql): Promise<number | null> {
  const [job] = await tx<Job[]>`
    select r.id, r.organization_id, r.subscription_id, r.source, r.event_types, r.position, r.end_id,
      r.matched_at::text, (select status from subscriptions s where s.id = r.subscription_id) as status,
      exists (select from lanes l where l.id = r.subscription_id and l.paced_until > now()) as is_held
    from replays r where r.finished_at is null and r.due_at <= now()
    order by r.due_at limit 1 for no key update of r skip locked
  `
  if (!job) return null
  if (job.status === null || job.status === 'disabled') {
    await tx`update replays set status = 'cancelled', finished_at = now() where id = ${job.id}`
    return 0
  }
  const room = await roomOf(tx, job.id)
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

/** How many more of its deliveries may wait; jobs share what is there for all of them. */
async function roomOf(tx: TransactionSql, id: string) {
  const [row] = await tx<{ waiting: number; jobs: number }[]>`
    select (select count(*)::int from due_deliveries where replay_id = ${id} and not tried) as waiting,
      (select count(*)::int from replays where finished_at is null) as jobs
  `
  const { waiting = 0, jobs = 1 } = row ?? {}
  return Math.max(0, shareOf(jobs) - waiting)
}

/** How many deliveries of one job may wait for their first attempt, when there are so many jobs. */
export const shareOf = (jobs: number): number => Math.max(1, Math.min(mostOfJob, Math.floor(mostWaiting / jobs)))

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
