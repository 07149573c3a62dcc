import { setTimeout as sleep } from 'node:timers/promises'
import { isDatabaseAway } from '@app/shared/database.ts'
import type { Core } from '../app.ts'
import { leaseMs } from './pace.ts'
import type { AcceptableSend } from './insert-sends.ts'

const retryMs = 250

/**
 * Gives back what a statement may have begun whose outcome was lost with its connection: no call was made, so these sends
 * wait for their claim like any others. Tries as long as the lanes are surely its own; what it cannot give back by then is
 * found begun, and counts as unknown.
 */
export async function letGo(
  { sql, log }: Pick<Core, 'sql' | 'log'>,
  sends: AcceptableSend[],
  holder: number,
  heldSince: number,
): Promise<void> {
  const lanes = [...new Set(sends.map(({ conversation_id: id }) => id))]
  const ids = sends.map(({ id }) => id)
  while (performance.now() - heldSince < leaseMs / 2) {
    try {
      const { count } = await sql`
        with mine as (
          update send_lanes set held_until = '-infinity', holder = null
          where id = any(${lanes}::text[]) and holder = ${holder}::bigint and held_until > now() returning id
        )
        update sends set attempts = 0, begun_at = null from mine
        where lane = mine.id and message_id = any(${ids}::text[]) and attempts = 1 and begun_at is not null
      `
      if (count > 0) log.warn({ count }, 'sends were accepted in a statement whose answer was lost')
      return
    } catch (err) {
      if (!isDatabaseAway(err)) return log.error({ err }, 'sends that were begun cannot be given back')
      await sleep(retryMs)
    }
  }
}
