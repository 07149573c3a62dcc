import type { Handler } from '@app/shared/api/contract.ts'
import type { redriveCallbacks as contract } from '@app/shared/contracts/messaging-changes.ts'
import type { Sql } from '@app/shared/database/database.ts'
import { batchSize } from '@app/shared/work/batched.ts'
import type { App } from '../app.ts'
import { insertCallbacks, statementSize } from './accept-callback.ts'
import { splitCallback } from './split.ts'

const minuteMs = 60 * 1000
/** Raw callbacks are kept for 7 days, and their partition's day. */
const keptMs = 8 * 24 * 60 * minuteMs
/** A span is looked at whole, so it is made short where much was received. */
const longestSpanMs = 60 * minuteMs
const mostRows = 5_000
/** Whoever asks waits so long for the answer, after the last batch. */
const marginMs = 3_000

export const redriveCallbacks: Handler<App, typeof contract> = async (app, { body }, caller) => {
  const { sql, log, callbacks } = app
  const end = Date.now()
  let from = Math.max(Date.parse(body.since), end - keptMs)
  let spanMs = minuteMs
  let count = 0
  const isOver = () => performance.now() >= caller.deadline - marginMs
  while (from < end && !isOver()) {
    const span = { from: new Date(from), to: new Date(Math.min(from + spanMs, end)) }
    const kept = await keptIn(sql, span)
    if (kept.length > mostRows && spanMs > 1) {
      spanMs = Math.ceil(spanMs / 4)
      continue
    }
    const done = await driveAll(sql, span, kept, isOver)
    callbacks.wake()
    count += done
    from = (kept[done]?.receivedAt ?? span.to).getTime()
    if (kept.length < mostRows / 4) spanMs = Math.min(spanMs * 2, longestSpanMs)
  }
  log.warn({ count, since: body.since }, 'callbacks are worked through again')
  return { service: app.name, callbacks: count, next_since: from < end ? new Date(from).toISOString() : null }
}

interface Span {
  from: Date
  to: Date
}

interface Kept {
  id: string
  receivedAt: Date
  bytes: number
}

/** Sorted here: Postgres stops looking at one more than are taken. */
async function keptIn(sql: Sql, { from, to }: Span): Promise<Kept[]> {
  const rows = await sql<Kept[]>`
    select id, received_at, octet_length(body) as bytes from callbacks
    where received_at >= ${from} and received_at < ${to} limit ${mostRows + 1}
  `
  return rows.toSorted((a, b) => a.receivedAt.getTime() - b.receivedAt.getTime())
}

/** At least one batch, so that whoever asks again comes further; answers how many callbacks it were. */
async function driveAll(sql: Sql, span: Span, kept: Kept[], isOver: () => boolean) {
  let done = 0
  while (done < kept.length && (done === 0 || !isOver())) {
    const rest = kept.slice(done)
    const size = batchSize(rest, { ...statementSize, sizeOf: ({ bytes }) => bytes })
    await drive(sql, span, rest.slice(0, size))
    done += size
  }
  return done
}

async function drive(sql: Sql, { from, to }: Span, kept: Kept[]) {
  const ids = kept.map(({ id }) => id)
  const rows = await sql<{ id: string; receivedAt: Date; body: Uint8Array }[]>`
    select id, received_at, body from callbacks
    where received_at >= ${from} and received_at < ${to} and id = any(${ids}::bigint[])
    order by id
  `
  const nothing = new Uint8Array()
  await insertCallbacks(
    sql,
    rows.map(({ id, receivedAt, body }) => ({ id, receivedAt, body: nothing, split: splitCallback(body) })),
  )
}
