import { setTimeout as sleep } from 'node:timers/promises'
import { isDatabaseAway } from '@app/shared/database/database.ts'
import { givingBack } from '@app/shared/mailbox/lanes.ts'
import type { Claimed } from '@app/shared/mailbox/mailbox.ts'
import type { Core } from '../app.ts'
import type { OpenSend } from './open-send.ts'
import { leaseMs } from './pace.ts'
import type { AcceptableSend } from './insert-sends.ts'

type Ways = Pick<Core, 'sql' | 'log'>

const retryMs = 250

/** Gives back what a statement that accepts sends may have begun, when its outcome was lost with its connection. */
export function letGo({ sql, log }: Ways, sends: AcceptableSend[], holder: number, heldSince: number): Promise<void> {
  const lanes = [...new Set(sends.map(({ conversation_id: id }) => id))]
  const ids = sends.map(({ id }) => id)
  return giveBack(
    log,
    heldSince,
    () => sql`
      with mine as (
        update send_lanes set held_until = '-infinity', holder = null
        where id = any(${lanes}::text[]) and holder = ${holder}::bigint and held_until > now() returning id
      )
      update sends set attempts = 0, begun_at = null from mine
      where lane = mine.id and message_id = any(${ids}::text[]) and attempts = 1 and begun_at is not null
    `,
  )
}

/** The same of a claim whose commit was not answered. */
export function letGoClaimed(
  { sql, log }: Ways,
  { lanes, items }: Claimed<OpenSend>,
  heldSince: number,
): Promise<void> {
  const begun = items.filter(({ step }) => step === 'send').map(({ seq }) => seq)
  const releases = lanes.map((lane) => ({ lane, waitMs: 0 }))
  return giveBack(
    log,
    heldSince,
    () => sql`
      with ${givingBack(sql, 'send_lanes', releases)}
      update sends set attempts = attempts - 1, begun_at = null from mine
      where lane = mine.id and seq = any(${begun}::bigint[]) and begun_at is not null
    `,
  )
}

/**
 * No call was made, so these sends wait for their claim like any others. Tries as long as the lanes are surely its own; what
 * it cannot give back by then is found begun, and counts as unknown.
 */
async function giveBack(log: Core['log'], heldSince: number, statement: () => PromiseLike<{ count: number }>) {
  while (performance.now() - heldSince < leaseMs / 2) {
    try {
      const { count } = await statement()
      if (count > 0) log.warn({ count }, 'sends had begun in a statement whose answer was lost')
      return
    } catch (err) {
      if (!isDatabaseAway(err)) return log.error({ err }, 'sends that were begun cannot be given back')
      await sleep(retryMs)
    }
  }
}
