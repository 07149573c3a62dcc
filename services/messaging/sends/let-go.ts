import { retryWhileAway } from '@app/shared/database/retry-while-away.ts'
import type { Core } from '../app.ts'
import { leaseMs } from './pace.ts'
import type { AcceptableSend } from './insert-sends.ts'

type Ways = Pick<Core, 'sql' | 'log'>

/**
 * Gives back what a statement that accepts sends may have begun, when its outcome was lost with its connection. No call was
 * made, so these sends wait for their claim like any others. Tries as long as the lanes are surely its own; what it cannot
 * give back by then is found begun, and counts as unknown.
 */
export async function letGo({ sql, log }: Ways, sends: AcceptableSend[], holder: number, heldSince: number) {
  const lanes = [...new Set(sends.map(({ conversation_id: id }) => id))]
  const ids = sends.map(({ id }) => id)
  const giveBack = () => sql`
    with mine as (
      update send_lanes set held_until = '-infinity', holder = null
      where id = any(${lanes}::text[]) and holder = ${holder}::bigint and held_until > now() returning id
    )
    update sends set attempts = 0, begun_at = null from mine
    where lane = mine.id and message_id = any(${ids}::text[]) and attempts = 1 and begun_at is not null
  `
  try {
    const { count } = await retryWhileAway(giveBack, heldSince + leaseMs / 2)
    if (count > 0) log.warn({ count }, 'sends that had begun in a statement whose answer was lost were released')
  } catch (err) {
    log.error({ err }, 'sends that had begun cannot be released')
  }
}
