import type { TransactionSql } from 'postgres'
import { makePastPartitions } from './past-partitions.ts'
import type { Project } from './project.ts'
import { numberRows } from './number-rows.ts'

const days = 30
const types = ['message.sent', 'message.status', 'message.received']
const rareType = 'message.revoked'

export interface Subscribers {
  subscriptionIds: string[]
  /** Has four deliveries in a thousand. */
  rareId: string
}

/** What there is to look for. */
export interface FilledDeliveries {
  rareType: string
  /** Of a dead delivery that is as old as half of the others. */
  deliveryId: string
  eventId: string
}

/**
 * Writes deliveries of subscriptions that are paused straight into the tables, over the last month. Of a hundred one is
 * dead, one has failed and will be tried again, one is pending. The rare type has one in ten thousand, dead ones; of few
 * deliveries more, so that its page is as long.
 */
export async function fillDeliveries(
  project: Project,
  subscribers: Subscribers,
  count: number,
): Promise<FilledDeliveries> {
  const sql = project.sql()
  const { organization_id: organizationId } = project.stack()
  await makePastPartitions(project, days)
  await sql.begin(async (tx) => {
    await numberRows(tx, count, days)
    await fillRows(tx, organizationId, subscribers, rareStep(count))
  })
  for (const table of tables) await sql.unsafe(`vacuum (analyze) webhooks.${table}`)
  const [middle] = await sql<{ deliveryId: string; eventId: string }[]>`
    select d.id as "deliveryId", d.event_id as "eventId" from webhooks.dead_deliveries x join webhooks.deliveries d on d.id = x.id
    where x.organization_id = ${organizationId} order by x.id offset ${Math.floor(count / 200)}::int limit 1
  `
  if (!middle) throw new Error('nothing in the middle')
  return { ...middle, rareType }
}

const tables = ['deliveries', 'due_deliveries', 'dead_deliveries', 'attempts']

/** One of so many is of the rare type: at least some thirty are, and all of them dead. */
const rareStep = (count: number) => Math.min(10_000, Math.max(1, Math.floor(count / 3_000)) * 100)

async function fillRows(
  tx: TransactionSql,
  organizationId: string,
  { subscriptionIds, rareId }: Subscribers,
  step: number,
) {
  const subscriptionId = tx`case when n % 1000 < 4 then ${rareId}
    else (${subscriptionIds}::text[])[1 + n % ${subscriptionIds.length}::int] end`
  const eventType = tx`case when n % ${step}::int = 101 % ${step}::int then ${rareType}
    else (${types}::text[])[1 + n % ${types.length}::int] end`
  await tx`
    insert into webhooks.deliveries (id, organization_id, subscription_id, event_type, event_id)
    select 'wbd_' || characters, ${organizationId}, ${subscriptionId}, ${eventType}, 'filled:' || n from filled
  `
  await tx`
    insert into webhooks.delivered_types (organization_id, event_type)
    select ${organizationId}, unnest(${[...types, rareType]}::text[]) on conflict do nothing
  `
  await tx`
    insert into webhooks.dead_deliveries (id, organization_id, subscription_id, event_type)
    select 'wbd_' || characters, ${organizationId}, ${subscriptionId}, ${eventType} from filled where n % 100 = 1
  `
  await tx`
    insert into webhooks.due_deliveries (id, organization_id, subscription_id, event_at, event_id, event_type, attempts, tries,
      tried, due_at)
    select 'wbd_' || characters, ${organizationId}, ${subscriptionId}, at, 'filled:' || n, ${eventType}, 3 - n % 100, 3 - n % 100, n % 100 = 2,
      now() + interval '1 day'
    from filled where n % 100 in (2, 3)
  `
  await tx`
    insert into webhooks.attempts (delivery_id, number, started_at, duration_ms, response_status)
    select 'wbd_' || characters, 1, at, 12, case when n % 100 in (1, 2) then 500 else 200 end from filled where n % 100 <> 3
  `
}

/** Takes the open ones away, which would wait for ever. */
export async function forgetOpenDeliveries(project: Project): Promise<void> {
  await project.sql()`delete from webhooks.due_deliveries where event_id like 'filled:%'`
}
