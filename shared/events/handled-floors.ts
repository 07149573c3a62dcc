import type { TransactionSql } from '../database/database.ts'
import { each } from '../database/each.ts'
import type { Sweep } from '../database/housekeeping.ts'
import type { DataService, ServiceName } from '../service/service.ts'
import { isDue } from './outbox-marks.ts'
import { waits } from './outbox.ts'
import { lookAtPlaces, type Place } from './places.ts'
import { consumersOf } from './provision.ts'

/**
 * A sweep: notes for each consumer of our events up to which of them it has handled all, so that a stream that was lost is filled again
 * from there (refill.ts). It takes the stream's word for it, minutes late: what was acked was handled. What the stream lost before
 * anybody acked it is left to the audit (audit.ts), by whose marks this goes.
 */
export function noteFloors(app: DataService): Sweep {
  const names = namesOf(app.name)
  return async function sweepFloors(sql) {
    await sql`insert into handled_floors (consumer) select * from ${each(sql, names)} on conflict do nothing`
    try {
      await sql.begin(async (tx) => {
        // Who makes events wait again has to wait, since he forgets what is noted here.
        await tx`select from handled_floors order by consumer for update`
        // Before the stream is asked: what is published by now stands in what it tells then, and what is published meanwhile is no loss.
        const published = await lookAtPublished(tx)
        const { created, lastSeq, places } = await lookAtPlaces(app)
        const lacks = published?.streamCreated !== created || Number(published.lastSeq) > lastSeq
        // The relay has not noticed it yet.
        if (lacks) return
        await note(tx, { due: published.due, lastSeq, places })
      })
    } catch (err) {
      app.log.warn({ err }, 'what the consumers have acked cannot be seen now')
    }
    return 0
  }
}

const namesOf = (service: ServiceName) => consumersOf(service).map(({ name }) => name)

/** Up to which of the service's events all its consumers have handled all; 0: nobody knows. */
export async function handledFloor(tx: TransactionSql, service: ServiceName): Promise<number> {
  const [found] = await tx<{ floor: number }[]>`
    select min(coalesce(seq, 0))::float8 as floor
    from ${each(tx, namesOf(service))} c(consumer) left join handled_floors using (consumer)
  `
  return found?.floor ?? 0
}

/** Forgets what was noted of the stream; with `andFloors` also what the consumers are known to have handled, since it comes again. */
export async function forgetNotes(tx: TransactionSql, { andFloors = false } = {}): Promise<void> {
  await tx`
    update handled_floors set seq = case when ${andFloors} then 0 else seq end, next_seq = null, next_stream_seq = null
  `
}

interface PublishedUpTo {
  /** The newest mark up to which nothing waits to be published, nor will; null: there is none. */
  due: string | null
  /** The stream, and its newest place, as the relay remembers them. */
  streamCreated: string
  lastSeq: string
}

/** Undefined until the relay has seen a stream. */
async function lookAtPublished(tx: TransactionSql): Promise<PublishedUpTo | undefined> {
  const [found] = await tx<PublishedUpTo[]>`
    select stream_created, last_seq, (
      select max(seq) from outbox_marks m where ${isDue(tx)}
        and not exists (select from outbox where ${waits(tx)} and seq <= m.seq)
    ) as due
    from relay_position
  `
  return found
}

interface Seen extends Pick<PublishedUpTo, 'due'> {
  lastSeq: number
  places: Place[]
}

async function note(tx: TransactionSql, { due, lastSeq, places }: Seen) {
  const isReached = tx`next_seq is not null and (c."isIdle" or next_stream_seq <= c."ackedSeq")`
  await tx`
    update handled_floors h set
      seq = case when ${isReached} then next_seq else seq end,
      next_seq = case when ${isReached} or next_seq is null then ${due}::bigint else next_seq end,
      next_stream_seq = case when ${isReached} or next_seq is null then ${lastSeq}::bigint else next_stream_seq end
    from json_to_recordset(${JSON.stringify(places)}::text::json) as c(name text, "ackedSeq" bigint, "isIdle" boolean)
    where h.consumer = c.name
  `
}
