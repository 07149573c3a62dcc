import type { Sql, TransactionSql } from '@app/shared/database/database.ts'
import { record, type Recorded } from '@app/shared/events/events.ts'
import { type Loop, startLoop } from '@app/shared/work/loop.ts'
import type { Core } from '../app.ts'
import { withMedia } from './with-media.ts'

const pollMs = 1_000
const atOnce = 200

/** Tells of messages whose file takes too long, without it: once, whoever copies the file later. */
export function startLateTelling({ sql, log, relay }: Pick<Core, 'sql' | 'log' | 'relay'>): Loop {
  const loop = startLoop(log, 'late media', async () => {
    const [late] = await sql`select from media_copies where ${isLate(sql)} order by event_due_at limit 1`
    if (!late) return pollMs
    const told = await sql.begin(tellLate)
    if (told > 0) relay.wake()
    return told === atOnce ? 0 : pollMs
  })
  loop.wake()
  return loop
}

const isLate = (sql: Sql | TransactionSql) => sql`event is not null and event_due_at <= now()`

async function tellLate(tx: TransactionSql): Promise<number> {
  const late = await tx<{ event: Recorded }[]>`
    with late as (
      select seq, event from media_copies where ${isLate(tx)}
      order by event_due_at limit ${atOnce} for update skip locked
    ), told as (
      update media_copies c set event = null from late where c.seq = late.seq
    )
    select event from late
  `
  await record(
    tx,
    late.map(({ event }) => withMedia(event, null, 'pending')),
  )
  return late.length
}
