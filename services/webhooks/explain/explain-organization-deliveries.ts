import type { Handler } from '@app/shared/api/contract.ts'
import { type explainOrganizationDeliveries as contract, standing } from '@app/shared/contracts/explain.ts'
import type { Sql } from '@app/shared/database/database.ts'
import type { App } from '../app.ts'

export const explainOrganizationDeliveries: Handler<App, typeof contract> = async ({ sql }, { body: { id } }) => {
  const { active, all, notActive, pending, failed, backlog, replays } = await find(sql, id)
  const subscriptions =
    all === 0
      ? 'it has no webhook subscription: nobody gets its events'
      : `${active} of ${all} webhook subscriptions ${active === 1 ? 'is' : 'are'} active`
  const open = pending + failed
  const waiting = open === 0 ? 'no delivery waits' : open === 1 ? '1 delivery waits' : `${open} deliveries wait`
  return {
    history: [
      standing(`${subscriptions}; ${[pending, failed].includes(countedRows) ? 'at least ' : ''}${waiting}`, {
        ...(notActive.length > 0 && { not_active: notActive }),
        pending,
        failed,
        events_in_the_backlog: backlog,
        replays_under_way: replays,
      }),
    ],
  }
}

interface Standing {
  active: number
  all: number
  /** The first of the subscriptions that are paused or disabled. */
  notActive: string[]
  pending: number
  failed: number
  backlog: number
  replays: number
}

/** Of more it is said that there are at least so many. */
const countedRows = 10_000
const shownSubscriptions = 20

async function find(sql: Sql, id: string) {
  const open = (tried: boolean) => sql`(select count(*)::int from (
    select from due_deliveries where organization_id = ${id} and tried = ${tried} limit ${countedRows}
  ) d)`
  const [row] = await sql<[Standing]>`
    select count(*)::int as all, (count(*) filter (where status = 'active'))::int as active,
      coalesce((array_agg(id order by id) filter (where status <> 'active'))[:${shownSubscriptions}::int], '{}') as not_active,
      ${open(false)} as pending, ${open(true)} as failed,
      (select count(*)::int from (
        select from event_backlog where organization_id = ${id} limit ${countedRows}
      ) b) as backlog,
      (select count(*)::int from replays where organization_id = ${id} and finished_at is null) as replays
    from subscriptions where organization_id = ${id}
  `
  return row
}
