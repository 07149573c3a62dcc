import type { Handler } from '@app/shared/api/contract.ts'
import type { redriveCallbacks as contract } from '@app/shared/contracts/messaging-changes.ts'
import type { Sql } from '@app/shared/database/database.ts'
import type { App } from '../app.ts'
import { insertCallbacks } from './accept-callback.ts'
import { splitCallback } from './split.ts'

const minuteMs = 60 * 1000
/** Raw callbacks are kept for 7 days, and their partition's day. */
const keptMs = 8 * 24 * 60 * minuteMs
/** A span is looked at whole, so it is made short where much was received. */
const longestSpanMs = 60 * minuteMs
const mostRows = 5_000
/** Callbacks, of 3 MB at most, in memory at a time. */
const batchRows = 32
/** Whoever asks waits so long for the answer, after the last batch. */
const marginMs = 3_000

export const redriveCallbacks: Handler<App, typeof contract> = async (app, { body }, caller) => {
  const { sql, log, callbacks } = app
  const end = Date.now()
  let from = Math.max(Date.parse(body.since), end - keptMs)
  let spanMs = minuteMs
  let count = 0
  while (from < end && performance.now() < caller.deadline - marginMs) {
    const span = { from: new Date(from), to: new Date(Math.min(from + spanMs, end)) }
    const ids = await idsIn(sql, span)
    if (ids.length > mostRows && spanMs > 1) {
      spanMs = Math.ceil(spanMs / 4)
      continue
    }
    for (let n = 0; n < ids.length; n += batchRows) await drive(sql, span, ids.slice(n, n + batchRows))
    callbacks.wake()
    count += ids.length
    from = span.to.getTime()
    if (ids.length < mostRows / 4) spanMs = Math.min(spanMs * 2, longestSpanMs)
  }
  log.warn({ count, since: body.since }, 'callbacks are worked through again')
  return { service: app.name, callbacks: count, next_since: from < end ? new Date(from).toISOString() : null }
}

interface Span {
  from: Date
  to: Date
}

async function idsIn(sql: Sql, { from, to }: Span): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    select id from callbacks where received_at >= ${from} and received_at < ${to} limit ${mostRows + 1}
  `
  return rows.map(({ id }) => id)
}

async function drive(sql: Sql, { from, to }: Span, ids: string[]) {
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
