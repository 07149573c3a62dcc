import { newId } from '@app/shared/values/ids.ts'
import { Problem } from '@app/shared/api/problem.ts'
import type { Sql, TransactionSql } from '@app/shared/database/database.ts'
import { insist } from '@app/test/each-step.ts'
import { endConnections } from '@app/test/end-connections.ts'
import { between, oneByWeight, oneOf, type Random, type Weighted } from '@app/test/faults/random.ts'
import { replayWebhookDelivery } from '../deliveries/replay-webhook-delivery.ts'
import { cancelWebhookReplay } from '../replays/cancel-webhook-replay.ts'
import { createWebhookReplay } from '../replays/create-webhook-replay.ts'
import { deleteWebhookSubscription } from '../subscriptions/delete-webhook-subscription.ts'
import { disableWebhookSubscription } from '../subscriptions/disable-webhook-subscription.ts'
import { enableWebhookSubscription } from '../subscriptions/enable-webhook-subscription.ts'
import { updateWebhookSubscription } from '../subscriptions/update-webhook-subscription.ts'
import { askSurely, type Scene, subscribe, type Tenant } from './scene.ts'

type Act = (scene: Scene, tenant: Tenant, random: Random) => unknown

const anySubscription = ({ lasting, passing }: Tenant, random: Random) => oneOf(random, [...lasting, ...passing])

/** Somebody emits, changes, replays or breaks something. */
export function actAtRandom(scene: Scene, random: Random): Promise<unknown> {
  const act = oneByWeight(random, acts)
  return Promise.resolve(act(scene, oneOf(random, scene.tenants), random)).catch(unlessRefused)
}

/** What is asked may be nothing any more, or not be possible now, since somebody else was there before. */
const refusals = ['resource_not_found', 'webhook_subscription_disabled', 'delivery_pending', 'replay_in_progress']
function unlessRefused(err: unknown) {
  if (!(err instanceof Problem && refusals.includes(err.failure))) throw err
}

const emitPlain: Act = async (_, tenant, random) => {
  const events = Array.from({ length: between(random, 1, 4) }, () => newEvent(tenant, random))
  await emit(tenant, random, events)
}

/** The next events of a customer are emitted once those before them are. */
const emitInLine: Act = async (_, tenant, random) => {
  const line = `cus_${between(random, 1, 2)}`
  const of = tenant.lines.get(line) ?? { ids: [], emitted: Promise.resolve() }
  tenant.lines.set(line, of)
  const events = Array.from({ length: between(random, 1, 3) }, () => ({
    ...newEvent(tenant, random),
    line,
    type: 'customer.updated',
  }))
  of.ids.push(...events.map(({ eventId }) => eventId))
  of.emitted = of.emitted.then(() => emit(tenant, random, events))
  await of.emitted
}

function newEvent(tenant: Tenant, random: Random) {
  const eventId = newId('evt')
  const payload = JSON.stringify({ id: eventId, text: 'ä"'.repeat(between(random, 0, 200)) })
  tenant.payloads.set(eventId, payload)
  return { eventId, payload, at: new Date() }
}

const emit = (tenant: Tenant, random: Random, events: object[]) => {
  const instance = oneOf(random, tenant.instances)
  return insist(() => instance.emit(...events))
}

const update =
  (bodyOf: (scene: Scene, random: Random) => { status?: 'active' | 'paused'; url?: string }): Act =>
  (scene, tenant, random) => {
    const id = anySubscription(tenant, random)
    const instance = oneOf(random, tenant.instances)
    return askSurely(instance, updateWebhookSubscription, { params: { id }, body: bodyOf(scene, random) })
  }

const pause = update(() => ({ status: 'paused' }))
const resume = update(() => ({ status: 'active' }))
const move = update(({ endpoints }, random) => ({ url: oneOf(random, endpoints.urls) }))

const disable: Act = (scene, tenant, random) => {
  const id = anySubscription(tenant, random)
  scene.causes.disabled.add(id)
  return askSurely(oneOf(random, tenant.instances), disableWebhookSubscription, { body: { subscription_id: id } })
}

const enable: Act = (_, tenant, random) => {
  const id = anySubscription(tenant, random)
  return askSurely(oneOf(random, tenant.instances), enableWebhookSubscription, { params: { id }, body: {} })
}

/** Another one comes in its place. */
const deleteOne: Act = async (scene, tenant, random) => {
  const id = tenant.passing.shift()
  if (id === undefined) return
  scene.causes.deleted.add(id)
  const instance = oneOf(random, tenant.instances)
  await askSurely(instance, deleteWebhookSubscription, { params: { id } }).catch(unlessRefused)
  tenant.passing.push(await subscribe(scene, tenant, random))
}

const replayOne: Act = async ({ sql, causes }, tenant, random) => {
  const rows = await sql<{ id: string }[]>`
    select id from deliveries where organization_id = ${tenant.organizationId} order by id desc limit 40
  `
  if (rows.length === 0) return
  const { id } = oneOf(random, rows)
  const replay = await askSurely(oneOf(random, tenant.instances), replayWebhookDelivery, { params: { id } })
  causes.replayed.add(replay.id)
}

const replayMany: Act = async (_, tenant, random) => {
  const body = {
    subscription_id: anySubscription(tenant, random),
    since: new Date(Date.now() - 3_600_000).toISOString(),
    status: oneOf(random, ['dead', 'failed'] as const),
  }
  await askSurely(oneOf(random, tenant.instances), createWebhookReplay, { body })
}

const cancelReplay: Act = async ({ sql }, tenant, random) => {
  const rows = await sql<{ id: string }[]>`
    select id from replays where organization_id = ${tenant.organizationId} and finished_at is null order by id
  `
  if (rows.length === 0) return
  const { id } = oneOf(random, rows)
  await askSurely(oneOf(random, tenant.instances), cancelWebhookReplay, { params: { id } })
}

/** As if the lease of its holder had lapsed. */
const lapse = (sql: Sql | TransactionSql, id: string) => sql`
  update lanes set held_until = '-infinity', due_at = now(), arrivals = arrivals + 1 where id = ${id}
`
const stealLane: Act = ({ sql }, tenant, random) => lapse(sql, anySubscription(tenant, random))

/** As if whoever held the lane had died in his calls long ago. He lives, and his calls go on beside those that are made again. */
const loseHolder: Act = async ({ sql, causes }, tenant, random) => {
  const id = anySubscription(tenant, random)
  const rows = await sql.begin(async (tx) => {
    await lapse(tx, id)
    return tx<{ id: string }[]>`
      update due_deliveries set begun_at = begun_at - interval '30 seconds'
      where id = any(array(
        select id from due_deliveries where subscription_id = ${id} and begun_at is not null order by id
        for update skip locked
      )) returning id
    `
  })
  for (const row of rows) causes.abandoned.add(row.id)
}

/** What waits for its time has it now. */
export const hurry = ({ sql }: Scene, { organizationId }: Tenant): Promise<unknown> =>
  sql.begin(async (tx) => {
    await tx`
      update lanes set due_at = now(), paced_until = '-infinity', arrivals = arrivals + 1
      where id = any(array(
        select id from lanes where grp = ${organizationId} and due_at > now() order by id for update skip locked
      ))
    `
    await tx`
      update due_deliveries set due_at = now() where id = any(array(
        select id from due_deliveries where organization_id = ${organizationId} and due_at > now() and begun_at is null
        order by id for update skip locked
      ))
    `
    await tx`
      update replays set due_at = now() where id = any(array(
        select id from replays where organization_id = ${organizationId} and finished_at is null and due_at > now()
        order by id for no key update skip locked
      ))
    `
  })

const changeMood: Act = ({ endpoints }, _, random) => endpoints.change(random)

/** Somebody emits as often as somebody changes something. */
const acts: Weighted<Act>[] = [
  [5, emitPlain],
  [5, emitInLine],
  [1, pause],
  [2, resume],
  [1, move],
  [1, disable],
  [4, enable],
  [1, deleteOne],
  [1, replayOne],
  [2, replayMany],
  [1, cancelReplay],
  [2, changeMood],
  [2, hurry],
  [1, stealLane],
  [1, loseHolder],
  [1, ({ sql }) => endConnections(sql)],
]
