import type { TransactionSql } from '../database/database.ts'
import { each } from '../database/each.ts'
import type { Sweep } from '../database/housekeeping.ts'
import type { DataService, ServiceName } from '../service/service.ts'
import { isDue } from './outbox-marks.ts'
import { askAgainMs, consumersOf, managerOf } from './provision.ts'
import { streamName } from './stream.ts'

/**
 * A sweep: notes for each consumer of our events up to which of them it has handled all, so that a stream that was lost is filled again
 * from there (refill.ts). It takes the stream's word for it, minutes late: what was acked was handled. What the stream lost before
 * anybody acked it is left to the audit (audit.ts), by whose marks this goes.
 */
export function noteFloors(app: DataService): Sweep {
  const names = consumersOf(app.name).map(({ name }) => name)
  return async function sweepFloors(sql) {
    await sql`insert into handled_floors (consumer) select * from ${each(sql, names)} on conflict do nothing`
    try {
      await sql.begin(async (tx) => {
        // Who makes events wait again has to wait, since he forgets what is noted here.
        await tx`select from handled_floors order by consumer for update`
        // Before the stream is asked: all that is published by now stands in what it tells then.
        const due = await publishedUpTo(tx)
        await note(tx, due, await lookAt(app, names))
      })
    } catch (err) {
      app.log.warn({ err }, 'what the consumers have acked cannot be seen now')
    }
    return 0
  }
}

/** Up to which of the service's events all its consumers have handled all; 0: nobody knows. */
export async function handledFloor(tx: TransactionSql, service: ServiceName): Promise<number> {
  const [{ floor } = { floor: 0 }] = await tx<{ floor: number }[]>`
    select coalesce(min(coalesce(f.seq, 0)), 0)::float8 as floor
    from ${each(
      tx,
      consumersOf(service).map(({ name }) => name),
    )} c(consumer) left join handled_floors f using (consumer)
  `
  return floor
}

/** Forgets what was noted of the stream; with `andFloors` also what the consumers are known to have handled, since it comes again. */
export async function forgetNotes(tx: TransactionSql, { andFloors = false } = {}): Promise<void> {
  await tx`
    update handled_floors set seq = case when ${andFloors} then 0 else seq end, next_seq = null, next_stream_seq = null
  `
}

/** The newest mark up to which nothing waits to be published, nor will; null: there is none. */
async function publishedUpTo(tx: TransactionSql): Promise<string | null> {
  const [found] = await tx<{ due: string | null }[]>`
    select max(seq) as due from outbox_marks m where ${isDue(tx)}
      and not exists (select from outbox o where o.published_at is null and o.refused is null and o.seq <= m.seq)
  `
  return found?.due ?? null
}

/** The stream, and what each of these consumers has acked. */
async function lookAt({ eventBus }: DataService, names: string[]) {
  const jsm = await managerOf(eventBus.nc, askAgainMs)
  const { created, state } = await jsm.streams.info(streamName)
  const all = await jsm.consumers.list(streamName).next()
  const consumers = all
    .filter(({ name }) => names.includes(name))
    .map(({ name, ack_floor: floor, num_pending: pending, num_ack_pending: inHand }) => ({
      consumer: name,
      acked: floor.stream_seq,
      is_idle: pending + inHand === 0,
    }))
  return { created, lastSeq: state.last_seq, consumers }
}

/** Nothing is noted of a stream that has lost something, which its relay has not noticed yet. */
async function note(
  tx: TransactionSql,
  due: string | null,
  { created, lastSeq, consumers }: Awaited<ReturnType<typeof lookAt>>,
) {
  const isReached = tx`next_seq is not null and (c.is_idle or next_stream_seq <= c.acked)`
  await tx`
    update handled_floors h set
      seq = case when ${isReached} then next_seq else seq end,
      next_seq = case when ${isReached} or next_seq is null then ${due}::bigint else next_seq end,
      next_stream_seq = case when ${isReached} or next_seq is null then ${lastSeq}::bigint else next_stream_seq end
    from json_to_recordset(${JSON.stringify(consumers)}::text::json) as c(consumer text, acked bigint, is_idle boolean)
    where h.consumer = c.consumer
      and exists (select from relay_position where stream_created = ${created} and last_seq <= ${lastSeq})
  `
}
