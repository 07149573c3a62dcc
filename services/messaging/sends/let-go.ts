import { setTimeout as sleep } from 'node:timers/promises'
import { retryWhileAway } from '@app/shared/database/retry-while-away.ts'
import type { Core } from '../app.ts'
import { leaseMs } from './pace.ts'
import type { AcceptableSend } from './insert-sends.ts'

type Ways = Pick<Core, 'sql' | 'log'>

const firstWaitMs = 100

/**
 * Gives back what a statement that accepts sends may have begun, when its outcome was lost with its connection. No call was
 * made, so these sends wait for their claim like any others. The statement may run on without its connection, or be undone, and
 * nobody can tell these apart: its sends are looked for as long as the lanes are surely its own. What cannot be given back by
 * then is found begun, and counts as unknown.
 */
export async function letGo({ sql, log }: Ways, sends: AcceptableSend[], holder: number, heldSince: number) {
  const deadline = heldSince + leaseMs / 2
  const lanes = [...new Set(sends.map(({ conversation_id: id }) => id))]
  const ids = sends.map(({ id }) => id)
  const giveBack = () => sql<[{ count: number; isDone: boolean }]>`
    with mine as (
      update send_lanes set held_until = '-infinity', holder = null
      where holder = ${holder}::bigint and id = any(array(
        select id from send_lanes where id = any(${lanes}::text[]) and holder = ${holder}::bigint order by id for update
      )) returning id
    ), released as (
      update sends set attempts = 0, begun_at = null from mine
      where lane = mine.id and message_id = any(${ids}::text[]) and attempts = 1 and begun_at is not null returning seq
    )
    select (select count(*)::int from released) as count,
      exists (select from sends where lane = any(${lanes}::text[]) and message_id = any(${ids}::text[])) as is_done
  `
  try {
    for (let waitMs = firstWaitMs; ; waitMs *= 2) {
      const [{ count, isDone }] = await retryWhileAway(giveBack, deadline)
      if (count > 0) log.warn({ count }, 'sends that had begun in a statement whose answer was lost were released')
      if (isDone || performance.now() + waitMs >= deadline) return
      await sleep(waitMs)
    }
  } catch (err) {
    log.error({ err }, 'sends that had begun cannot be released')
  }
}
