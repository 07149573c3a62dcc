import { randomBytes } from 'node:crypto'
import { systemCaller } from '@app/shared/bus/ask.ts'
import type { Caller, Handler, Input, Rpc, WholeAnswer } from '@app/shared/api/contract.ts'
import { findAccounts } from '@app/shared/contracts/platform.ts'
import type { WebhookDelivery } from '@app/shared/contracts/webhook-deliveries.ts'
import type {
  createWebhookSubscription as createContract,
  WebhookSubscription,
} from '@app/shared/contracts/webhooks.ts'
import type { Sql } from '@app/shared/database/database.ts'
import { createEgress } from '@app/shared/outside/egress.ts'
import { record } from '@app/shared/events/events.ts'
import { newId } from '@app/shared/values/ids.ts'
import { provision } from '@app/shared/events/provision.ts'
import { startRelay } from '@app/shared/events/relay.ts'
import { serve } from '@app/shared/bus/rpc.ts'
import { startHousekeeping } from '@app/shared/database/housekeeping.ts'
import { isDeadlock } from '@app/test/complaints.ts'
import { type TestService, testService } from '@app/test/service.ts'
import type { z } from 'zod'
import { type App, type Core, createQueryTurns } from '../app.ts'
import { startAttempts } from '../attempts/attempts.ts'
import { createPayloads } from '../attempts/payloads.ts'
import { getWebhookDelivery } from '../deliveries/get-webhook-delivery.ts'
import { listWebhookDeliveries } from '../deliveries/list-webhook-deliveries.ts'
import { partitions } from '../deliveries/retention.ts'
import { createMeters } from '../metrics.ts'
import { startReplays } from '../replays/enqueue-replays.ts'
import { startFanOut } from '../fan-out/fan-out.ts'
import { getWebhookSubscription } from '../subscriptions/get-webhook-subscription.ts'
import { createWebhookSubscription } from '../subscriptions/create-webhook-subscription.ts'

interface TestEvent {
  organizationId?: string
  eventId?: string
  type?: string | undefined
  subject?: string
  phone?: string
  line?: string
  at?: Date
  payload?: string
}

export type Asked<C extends Rpc> = Partial<Pick<Input<C>, 'params' | 'body'>>

type CreateBody = z.input<(typeof createContract)['body']>
export type EventType = CreateBody['events'][number]
type Created = z.output<(typeof createContract)['answer']>

/** What an organization does and sees. */
export interface Acts {
  organizationId: string
  caller: Caller
  subscribe: (body: Partial<CreateBody> & { url: string }, caller?: Caller) => Promise<Created>
  /** Records events in the outbox, from where the relay takes them; answers their ids. */
  emit: (...events: TestEvent[]) => Promise<string[]>
  deliveries: (query?: object) => Promise<z.input<typeof WebhookDelivery>[]>
  delivery: (id: string) => Promise<z.input<typeof WebhookDelivery> & { payload?: unknown }>
  subscription: (id: string) => Promise<z.input<typeof WebhookSubscription>>
  /** Asks a handler; the data of its answer, however it gives it. */
  ask: <C extends Rpc>(handler: Handler<App, C>, input: Asked<C>, asking?: Caller) => Promise<z.output<C['answer']>>
}

export interface TestWebhooks extends App, Acts {
  /** The same, of another organization. */
  another: () => Acts
  /** Empties the tables. */
  clear: () => Promise<void>
  /** Makes every wait of lanes and deliveries end now. */
  hurry: () => Promise<void>
  close: () => Promise<void>
}

export const ownNumber = '106540352242922'

/** Webhooks with real Postgres and NATS; which numbers are whose is answered here. */
export async function testWebhooks(given?: TestService): Promise<TestWebhooks> {
  const service = given ?? (await testService('webhooks'))
  await provision(service.nc)
  const keys = { current: 'k1', byId: new Map(['k1', 'k2'].map((id) => [id, randomBytes(32)])) }
  const core: Core = {
    ...service,
    relay: startRelay(service),
    cursorKeys: keys,
    sealKeys: keys,
    egress: createEgress({ allowCidrs: '127.0.0.0/8' }),
    payloads: createPayloads(),
    meters: createMeters(service),
  }
  const housekeeping = await startHousekeeping(core, { partitions })
  const platform = await serve({ ...core, name: 'platform' } as const, { findAccounts }, { findAccounts: ownNumbers })
  const { app, stop } = startInstance(core)
  return {
    ...app,
    ...acts(app),
    another: () => acts(app),
    ...emptying(app),
    async close() {
      await platform.stop()
      await stop()
      await housekeeping.stop()
      await core.relay.stop()
      await core.egress.close()
      await service.close()
    },
  }
}

/** All that an instance does by itself. */
export function startInstance(core: Core): { app: App; stop: () => Promise<void> } {
  const attempts = startAttempts(core)
  const app = { ...core, attempts, replays: startReplays(core, attempts.wake), ...createQueryTurns() }
  const fanOut = startFanOut(app)
  return {
    app,
    async stop() {
      await fanOut.stop()
      await app.replays.stop()
      await attempts.stop()
    },
  }
}

const ownNumbers = () => Promise.resolve({ phone_number_ids: [ownNumber] })

/** The caller asks as long as its file runs, which on a slow machine is longer than any request. */
export function acts(app: App, caller: Caller = { ...systemCaller(newId('org')), deadline: Infinity }): Acts {
  return {
    organizationId: caller.organizationId,
    caller,
    async subscribe(body, asking = caller) {
      const input = { params: {}, query: {}, body: { events: ['message.received'] as EventType[], ...body } }
      const created = await createWebhookSubscription(app, input, asking)
      return ('whole' in created ? JSON.parse(Buffer.from(created.body).toString()).data : created) as Created
    },
    async emit(...events) {
      const rows = events.map((event) => rowOf(event, caller.organizationId))
      await app.sql.begin((tx) => record(tx, rows))
      app.relay.wake()
      return rows.map(({ headers }) => headers.event)
    },
    async deliveries(query = {}) {
      const page = await listWebhookDeliveries(
        app,
        { params: {}, query: { limit: '100', ...query }, body: undefined },
        caller,
      )
      return 'whole' in page ? [] : page.data
    },
    delivery: (id) => deliveryOf(app, id, caller),
    async subscription(id) {
      const found = await getWebhookSubscription(app, { params: { id }, query: {}, body: undefined }, caller)
      if ('whole' in found) throw new Error('a subscription is answered by its handler')
      return found
    },
    async ask(handler, asked, asking = caller) {
      const input = { params: {}, query: {}, body: undefined, ...asked } as Parameters<typeof handler>[1]
      const answer = (await handler(app, input, asking)) as object
      return 'whole' in answer ? JSON.parse(Buffer.from((answer as WholeAnswer).body).toString()).data : answer
    },
  }
}

function emptying(app: App): Pick<TestWebhooks, 'clear' | 'hurry'> {
  return {
    async clear() {
      // What works beside the test may hold the tables for a while.
      for (let attempt = 1; ; attempt++) {
        try {
          return await clearTables(app.sql, attempt)
        } catch (err) {
          if (attempt === 10 || !isDeadlock(err)) throw err
        }
      }
    },
    async hurry() {
      await app.sql`update due_deliveries set due_at = now() where due_at is not null`
      await app.sql`
        update lanes set due_at = now(), paced_until = '-infinity', arrivals = arrivals + 1
        where id in (select subscription_id from due_deliveries)
      `
      await app.sql`update replays set due_at = now()`
      app.replays.wake()
      app.attempts.wake()
    },
  }
}

async function deliveryOf(app: App, id: string, caller: Caller) {
  const found = await getWebhookDelivery(app, { params: { id }, query: {}, body: undefined }, caller)
  if ('whole' in found) throw new Error('a delivery is answered by its handler')
  return found
}

function rowOf(event: TestEvent, organization: string) {
  const { organizationId = organization, eventId = newId('evt'), phone, line, at = new Date(), payload } = event
  const type = 'type' in event ? event.type : 'message.received'
  const { subject = line === undefined ? 'event.messaging.something-happened' : 'event.platform.something-happened' } =
    event
  return {
    id: `${organizationId}:${eventId}`,
    subject,
    headers: {
      organization: organizationId,
      event: eventId,
      type,
      source: 'svc' as const,
      phone,
      line,
      at: at.toISOString(),
    },
    payload: payload ?? JSON.stringify({ id: eventId, type, created_at: at.toISOString(), data: {} }),
  }
}

const tables =
  'subscriptions secrets lanes events delivered_types deliveries due_deliveries dead_deliveries attempts replays event_backlog outbox'

/**
 * What works beside locks them in several orders: each try has another. They have a hundred partitions and indexes, of which a test uses
 * a few: to truncate all takes as long as forty statements. Secrets go with their subscriptions.
 */
const clearTables = (sql: Sql, attempt: number) =>
  sql.begin(async (tx) => {
    await tx`select set_config('lock_timeout', '20s', true), set_config('statement_timeout', '20s', true)`
    const all = tables.split(' ')
    await tx`lock table ${tx([...all.slice(-attempt), ...all.slice(0, -attempt)])}`
    const used = await tx<{ name: string }[]>`
      select relname as name from pg_class left join pg_inherits on inhrelid = oid
      where relkind = 'r' and coalesce(inhparent, oid) = any(${all}::regclass[])
        and pg_relation_size(oid) > 0
    `
    if (used.length > 0) await tx`truncate ${tx(used.map(({ name }) => name))} cascade`
  })
