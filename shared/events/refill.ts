import type { TransactionSql } from '../database/database.ts'
import { restoreStream } from './provision.ts'
import type { DataService } from '../service/service.ts'

/** How far back a lost or restored stream is filled again; the stream itself keeps as long. */
const refillHours = 72
/** Blocks of a table (8 KiB) that one statement goes through: some thousand events, a fraction of what a statement may take. */
const blocksAStatement = 512

/**
 * A stream that is younger or shorter than the one remembered lost events: those of the last 72 h wait again, as if they had
 * not been published. With the place that is remembered in one transaction, so that a crash in it begins anew. Answers when the
 * stream was made that has, or gets, them all.
 */
export async function refillLostStream({ eventBus, sql, log, streamReplicas }: DataService): Promise<string> {
  const { created, state } = await restoreStream(eventBus.nc, streamReplicas)
  await sql.begin(async (tx) => {
    const [before] = await tx<{ streamCreated: string; lastSeq: string }[]>`
      select stream_created, last_seq from relay_position for update
    `
    if (!before) {
      await tx`
        insert into relay_position (stream_created, last_seq) values (${created}, ${state.last_seq})
        on conflict (one) do nothing
      `
      return
    }
    if (before.streamCreated === created && Number(before.lastSeq) <= state.last_seq) return
    const line = { before, created, lastSeq: state.last_seq }
    log.warn(line, 'the stream lost events: they are published again')
    const count = await waitAgain(tx, new Date(Date.now() - refillHours * 3_600_000))
    await tx`update relay_position set stream_created = ${created}, last_seq = ${state.last_seq}`
    log.warn({ ...line, count }, 'events wait to be published again')
  })
  return created
}

/** What was published and is not older waits to be published again, by the same ids; answers how much that is. */
export async function redrive({ sql, log }: DataService, since: Date): Promise<number> {
  const count = await sql.begin((tx) => waitAgain(tx, since))
  log.warn({ count, since }, 'events are published again')
  return count
}

/** Goes through the tables piece by piece, since one statement for millions of events would take longer than any may. */
async function waitAgain(tx: TransactionSql, since: Date) {
  const partitions = await tx<{ name: string; blocks: number }[]>`
    select c.oid::regclass::text as name,
      (pg_relation_size(c.oid) / current_setting('block_size')::int)::int as blocks
    from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = 'outbox'::regclass order by c.relname
  `
  let count = 0
  for (const { name, blocks } of partitions) {
    for (let block = 0; block < blocks; block += blocksAStatement) {
      const [from, to] = [`(${block},0)`, `(${block + blocksAStatement},0)`]
      const { count: some } = await tx`
        update ${tx(name)} set published_at = null
        where ctid >= ${from}::tid and ctid < ${to}::tid and published_at is not null and created_at >= ${since}
      `
      count += some
    }
  }
  return count
}
