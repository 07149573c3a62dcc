import type { ServerResponse } from 'node:http'
import type { Caller } from '@app/shared/api/contract.ts'
import { Problem } from '@app/shared/api/problem.ts'
import { openDatabase, type Sql } from '@app/shared/database/database.ts'
import type { Place } from '@app/shared/contracts/secrets.ts'
import { sealedAnswers } from '@app/shared/idempotency/idempotency.ts'
import { resealBatch } from '@app/shared/secrets/reseal-secrets.ts'
import { insist, insistTwice, testEachStep } from '@app/test/each-step.ts'
import { type SteppedService, steppedService } from '@app/test/service.ts'
import { until } from '@app/test/until.ts'
import { afterAll, beforeAll, expect } from 'vitest'
import { startAttempts } from './attempts/attempts.ts'
import { createExpirySweep, createOverflowSweep } from './attempts/give-up.ts'
import { replayWebhookDelivery } from './deliveries/replay-webhook-delivery.ts'
import { toRow } from './fan-out/record-events.ts'
import { createWebhookReplay } from './replays/create-webhook-replay.ts'
import { createWebhookSecret } from './subscriptions/create-webhook-secret.ts'
import { deleteWebhookSecret } from './subscriptions/delete-webhook-secret.ts'
import { deleteWebhookSubscription } from './subscriptions/delete-webhook-subscription.ts'
import { disableWebhookSubscription, sweepFailing } from './subscriptions/disable-webhook-subscription.ts'
import { sweepWaits } from './subscriptions/end-waits.ts'
import { enableWebhookSubscription } from './subscriptions/enable-webhook-subscription.ts'
import { sealedSecrets } from './subscriptions/secrets.ts'
import { testWebhookSubscription } from './subscriptions/test-webhook-subscription.ts'
import { updateWebhookSubscription } from './subscriptions/update-webhook-subscription.ts'
import { type Acts, type TestWebhooks, testWebhooks } from './testing/app.ts'
import { answer, type Receiver, type Respond, startReceiver } from './testing/receiver.ts'

let service: SteppedService
let webhooks: TestWebhooks
let receiver: Receiver
/** Past the proxy. */
let sql: Sql
beforeAll(async () => {
  service = await steppedService('webhooks')
  webhooks = await testWebhooks(service)
  sql = openDatabase(service.databaseUrl, 'webhooks')
  receiver = await startReceiver()
})
afterAll(async () => {
  await sql.end({ timeout: 1 })
  await receiver.close()
  await webhooks.close()
})

/** A fresh organization with a subscription. */
interface Tenant extends Acts {
  id: string
  withKey: (key: string) => Caller
}

interface Flow {
  /** What the receiver answers first. */
  first?: Respond[]
  run: (tenant: Tenant) => Promise<unknown>
  /** Deliveries, by event, each with its number of attempts. */
  made: string[]
  /** What is told of the subscription. */
  told?: string[]
  /** Deliveries that are given up, by event, each with its reason. */
  dead?: string[]
}

/** The call that is out and waits for its answer. */
let out: PromiseWithResolvers<ServerResponse>
const holding: Respond = (response) => out.resolve(response)

/** While the first call is out; it fails then. */
const whileOut = (act: (tenant: Tenant) => Promise<unknown>) => async (tenant: Tenant) => {
  await insist(() => tenant.emit({ eventId: 'a', line: 'l' }, { eventId: 'b', line: 'l' }))
  await recorded(tenant.organizationId, 2)
  const response = await out.promise
  await act(tenant)
  response.writeHead(500).end()
  await until(async () => {
    expect(await sql`select from attempts where delivery_id in (${idsOf(tenant)}) and number = 1`).toHaveLength(1)
  })
}
const idsOf = ({ organizationId }: Tenant) => sql`select id from deliveries where organization_id = ${organizationId}`

const flows: Record<string, Flow> = {
  'events, with a line and without': {
    run: ({ emit }) => insist(() => emit({ eventId: 'a', line: 'l' }, { eventId: 'b', line: 'l' }, { eventId: 'c' })),
    made: ['a 1', 'b 1', 'c 1'],
  },
  'failures until the subscription is told of': {
    first: Array.from({ length: 5 }, () => answer(500)),
    run: ({ emit }) => insist(() => emit({ eventId: 'a' })),
    made: ['a 6'],
    told: ['failing'],
  },
  'pause, resume, secret, test': {
    async run({ id, ask, withKey, emit, organizationId }) {
      const params = { id }
      await insist(() => ask(updateWebhookSubscription, { params, body: { status: 'paused' } }))
      await insist(() => emit({ eventId: 'a' }))
      await recorded(organizationId, 1)
      await insist(() => ask(updateWebhookSubscription, { params, body: { status: 'active', description: 'x' } }))
      await insistTwice(() => ask(createWebhookSecret, { params, body: {} }, withKey('secret')))
      await insistTwice(() => ask(testWebhookSubscription, { params }, withKey('test')))
    },
    made: ['a 1', 'test 1'],
    told: ['paused', 'resumed'],
  },
  'disable, enable, replays': {
    async run({ id, ask, withKey, emit, organizationId }) {
      const params = { id }
      await insist(() => ask(disableWebhookSubscription, { body: { subscription_id: id } }))
      await insist(() => emit({ eventId: 'a' }, { eventId: 'b' }))
      const [dead] = await recorded(organizationId, 2)
      await insistTwice(() => ask(enableWebhookSubscription, { params, body: {} }, withKey('enable')))
      const body = { subscription_id: id, since: new Date(Date.now() - 3_600_000).toISOString() }
      await insistTwice(() => ask(createWebhookReplay, { body }, withKey('all')))
      await insistTwice(() => ask(replayWebhookDelivery, { params: { id: dead?.id ?? '' } }, withKey('one')))
    },
    made: ['a 0', 'a 1', 'a 1', 'b 0', 'b 1'],
    told: ['disabled', 'resumed'],
  },
  'an endpoint that asks for time': {
    first: [answer(429, { 'retry-after': '60' }), answer(503, { 'retry-after': '60' })],
    run: ({ emit }) => insist(() => emit({ eventId: 'a', line: 'l' }, { eventId: 'b', line: 'l' })),
    made: ['a 3', 'b 1'],
  },
  'an endpoint that is gone': {
    first: [answer(410)],
    run: ({ emit }) => insist(() => emit({ eventId: 'a', line: 'l' }, { eventId: 'b', line: 'l' })),
    made: ['a 1', 'b 0'],
    told: ['disabled'],
    dead: ['a gone', 'b subscription_disabled'],
  },
  'an endpoint that moves': {
    first: [answer(500)],
    async run({ id, ask, emit, organizationId }) {
      await insist(() => emit({ eventId: 'a' }))
      await recorded(organizationId, 1)
      const body = { url: `${receiver.url}/moved` }
      await insist(() => ask(updateWebhookSubscription, { params: { id }, body }))
    },
    made: ['a 2'],
  },
  'a delivery that is given up': {
    first: [answer(500), answer(500)],
    async run({ id, emit, organizationId }) {
      await sql`update subscriptions set status = 'paused' where id = ${id}`
      await insist(() => emit({ eventId: 'a' }))
      await recorded(organizationId, 1)
      // Ten of its tries are over. A failure that counts twice opens the breaker, whose probes are no tries.
      await sql`update due_deliveries set tries = 10 where organization_id = ${organizationId}`
      await sql`update lanes set failures = 3, due_at = now() where id = ${id}`
      await sql`update subscriptions set status = 'active' where id = ${id}`
    },
    made: ['a 2'],
    told: ['failing'],
  },
  'a subscription that pauses itself, and heals': {
    first: [answer(500)],
    async run({ id, emit, organizationId }) {
      await sql`
        insert into lanes (id, grp, failures, failing_since) values (${id}, ${organizationId}, 19, now() - interval '11 minutes')
      `
      await insist(() => emit({ eventId: 'a' }))
    },
    made: ['a 2'],
    told: ['paused', 'resumed'],
  },
  'five days without a success': {
    async run({ id, emit, organizationId }) {
      await sql`update subscriptions set status = 'paused' where id = ${id}`
      await insist(() => emit({ eventId: 'a' }))
      await recorded(organizationId, 1)
      await sql`
        update subscriptions set disabled_reason = 'consecutive_failures', paused_at = now() - interval '121 hours' where id = ${id}
      `
      await insist(() => sweepFailing(webhooks.sql))
    },
    made: ['a 0'],
    told: ['disabled'],
  },
  'what waits too long, and what is behind it': {
    first: [answer(429, { 'retry-after': '60' })],
    async run({ id, emit, organizationId }) {
      await sql`update subscriptions set created_at = now() - interval '30 days' where id = ${id}`
      const at = new Date(Date.now() - 8 * 24 * 60 * 60 * 1000)
      await insist(() => emit({ eventId: 'a', line: 'l', at }, { eventId: 'b', line: 'l' }))
      await recorded(organizationId, 2)
      await until(async () => {
        expect(
          await sql`select 1 from due_deliveries where organization_id = ${organizationId} and tried`,
        ).toHaveLength(1)
      })
      await insist(() => createExpirySweep(webhooks)(webhooks.sql))
    },
    made: ['a 1', 'b 1'],
  },
  'events that wait for the turn of their organization': {
    async run(tenant) {
      const { emit, organizationId } = tenant
      // Another instance has the turn.
      await sql.begin(async (tx) => {
        await tx`select pg_advisory_xact_lock(hashtextextended(${`fan-out ${organizationId}`}, 0))`
        await putBack(tenant, 'a')
        await insist(() => emit({ eventId: 'b', line: 'l' }, { eventId: 'c', line: 'l' }))
        await until(async () => {
          expect(await sql`select 1 from event_backlog where organization_id = ${organizationId}`).toHaveLength(3)
        })
      })
    },
    made: ['a 1', 'b 1', 'c 1'],
  },
  'two instances, one of which loses nothing': {
    async run(tenant) {
      const other = startAttempts({ ...webhooks, sql })
      const waking = setInterval(other.wake, 20)
      const events = ['a', 'b', 'c', 'd', 'e', 'f'].map((eventId, n) => ({
        eventId,
        ...(n % 2 === 0 ? { line: 'l' } : {}),
      }))
      try {
        for (const some of [events.slice(0, 3), events.slice(3)]) await insist(() => tenant.emit(...some))
        await quiet(tenant, events.length)
      } finally {
        clearInterval(waking)
        await other.stop()
      }
    },
    made: ['a 1', 'b 1', 'c 1', 'd 1', 'e 1', 'f 1'],
  },
  'paused while a call is out, and resumed': {
    first: [holding],
    async run(tenant) {
      const change = (status: 'paused' | 'active') =>
        insist(() => tenant.ask(updateWebhookSubscription, { params: { id: tenant.id }, body: { status } }))
      await whileOut(() => change('paused'))(tenant)
      await change('active')
    },
    made: ['a 2', 'b 1'],
    told: ['paused', 'resumed'],
  },
  'deleted while a call is out': {
    first: [holding],
    run: whileOut(({ id, ask }) => insist(() => ask(deleteWebhookSubscription, { params: { id } })).catch(unlessGone)),
    made: ['a 1', 'b 0'],
    dead: ['a subscription_deleted', 'b subscription_deleted'],
  },
  'disabled while a call is out': {
    first: [holding],
    run: whileOut(({ id, ask }) => insist(() => ask(disableWebhookSubscription, { body: { subscription_id: id } }))),
    made: ['a 1', 'b 0'],
    told: ['disabled'],
    dead: ['a subscription_disabled', 'b subscription_disabled'],
  },
  'a new secret for the old one while a call is out': {
    first: [holding],
    async run(tenant) {
      const { id, ask, withKey } = tenant
      await whileOut(async () => {
        const old = await sql<{ id: string }[]>`select id from secrets where subscription_id = ${id}`
        await insistTwice(() => ask(createWebhookSecret, { params: { id }, body: {} }, withKey('secret')))
        const params = { id, secret_id: old[0]?.id ?? '' }
        await insist(() => ask(deleteWebhookSecret, { params })).catch(unlessGone)
      })(tenant)
      await quiet(tenant, 2)
      const ids = (await idsOf(tenant)).map((row) => row['id'])
      const signatures = receiver.got.flatMap(({ headers }) =>
        ids.includes(headers['x-svc-delivery-id']) ? [String(headers['x-svc-signature'])] : [],
      )
      expect(signatures.map((signature) => signature.split(',v1=').length - 1)).toEqual([1, 1, 1])
    },
    made: ['a 2', 'b 1'],
  },
  'more than a subscription may hold': {
    async run({ id, ask, emit, organizationId }) {
      const change = (status: 'paused' | 'active') =>
        insist(() => ask(updateWebhookSubscription, { params: { id }, body: { status } }))
      await change('paused')
      for (const eventId of ['a', 'b', 'c']) {
        await insist(() => emit({ eventId, line: 'l' }))
        await recorded(organizationId, eventId.charCodeAt(0) - 96)
      }
      await insist(() => createOverflowSweep(webhooks, 1)(webhooks.sql))
      await change('active')
    },
    made: ['a 0', 'b 0', 'c 1'],
    told: ['paused', 'resumed'],
    dead: ['a expired', 'b expired'],
  },
  'waits that end in portions': {
    first: [answer(500), answer(500)],
    async run(tenant) {
      const { id, emit } = tenant
      await insist(() => emit({ eventId: 'a' }, { eventId: 'b' }))
      await until(async () => {
        expect(
          await sql`select from due_deliveries where id in (${idsOf(tenant)}) and tried and begun_at is null`,
        ).toHaveLength(2)
      })
      await sql`update due_deliveries set due_at = now() + interval '1 h' where subscription_id = ${id}`
      await sql`update subscriptions set waits_until = 'infinity' where id = ${id}`
      while ((await insist(() => sweepWaits(webhooks.sql, 1))) > 0);
      webhooks.attempts.wake()
      await until(async () => {
        expect(await sql`select from attempts where delivery_id in (${idsOf(tenant)})`).toHaveLength(4)
      })
    },
    made: ['a 2', 'b 2'],
  },
  'events that are published again': {
    async run(tenant) {
      const since = new Date()
      await insist(() => tenant.emit({ eventId: 'a', line: 'l' }, { eventId: 'b' }))
      await quiet(tenant, 2)
      await insist(() => webhooks.relay.redrive(since))
      // Behind them: when it is delivered, they have been heard of again.
      await insist(() => tenant.emit({ eventId: 'z', line: 'l' }))
    },
    made: ['a 1', 'b 1', 'z 1'],
  },
  'secrets that are sealed again, by a new key': {
    async run({ id, ask, emit, withKey, organizationId }) {
      // Those of other flows are no steps of this one.
      await sql`delete from secrets where subscription_id <> ${id}`
      await sql`delete from idempotency.keys where organization_id <> ${organizationId}`
      await insistTwice(() => ask(createWebhookSecret, { params: { id }, body: {} }, withKey('secret')))
      const app = { ...webhooks, sealKeys: { ...webhooks.sealKeys, current: 'k2' } }
      let after: Place | null = null
      do {
        const place: Place | null = after
        after = (await insist(() => resealBatch(app, [sealedSecrets, sealedAnswers], place))).next
      } while (after !== null)
      const left = await sql`
        select from secrets where split_part(sealed, '.', 1) = 'k1' union all
        select from idempotency.keys where sealed and starts_with(encode(answer, 'escape'), 'k1.')
      `
      expect(left).toHaveLength(0)
      await insist(() => ask(createWebhookSecret, { params: { id }, body: {} }, withKey('secret')))
      await insist(() => emit({ eventId: 'a' }))
    },
    made: ['a 1'],
  },
  'a subscription that is deleted': {
    first: [answer(500)],
    async run({ id, ask, emit, organizationId }) {
      await insist(() => emit({ eventId: 'a' }))
      const [delivery] = await recorded(organizationId, 1)
      await until(async () => {
        expect(await sql`select 1 from attempts where delivery_id = ${delivery?.id ?? ''}`).toHaveLength(1)
      })
      await insist(() => ask(deleteWebhookSubscription, { params: { id } })).catch(unlessGone)
    },
    made: ['a 1'],
  },
}

/** As an instance leaves an event whose organization has used up its share. */
function putBack({ organizationId }: Tenant, eventId: string) {
  const at = new Date().toISOString()
  const headers = { organization: organizationId, event: eventId, type: 'message.received', line: 'l', at }
  const row = toRow({ subject: '', headers, payload: Buffer.from('{}') })
  return sql`
    insert into event_backlog (organization_id, event_id, head, payload)
    select ${organizationId}, ${eventId}, ${JSON.stringify(row?.head)}::text::jsonb, '{}'
  `
}

/** A second time there is nothing left to delete. */
const unlessGone = (err: unknown) => {
  if (!(err instanceof Problem && err.failure === 'resource_not_found')) throw err
}

const recorded = (organizationId: string, count: number) =>
  until(async () => {
    const rows = await sql<{ id: string }[]>`
      select id from deliveries where organization_id = ${organizationId} order by event_id
    `
    expect(rows).toHaveLength(count)
    return rows
  })

/** Nothing waits any more; what would be tried again later is tried now. */
const quiet = ({ organizationId }: Tenant, made: number) =>
  until(async () => {
    await sql`
      update due_deliveries set due_at = now() where organization_id = ${organizationId} and due_at > now() and begun_at is null
    `
    await sql`
      update lanes set due_at = now(), paced_until = '-infinity', arrivals = arrivals + 1
      where grp = ${organizationId} and due_at > now()
    `
    webhooks.attempts.wake()
    const [left] = await sql`
      select (select count(*)::int from deliveries where organization_id = ${organizationId}) as made,
        (select count(*)::int from due_deliveries where organization_id = ${organizationId}) as due,
        (select count(*)::int from replays where organization_id = ${organizationId} and finished_at is null) as replays,
        (select count(*)::int from lanes where grp = ${organizationId} and (held_until > now() or due_at is not null)) as lanes
    `
    expect(left).toEqual({ made, due: 0, replays: 0, lanes: 0 })
    // Less than a lease: nothing is left to whoever finds that its holder is gone.
  }, 9_000)

/** What stands in the tables, and what the receiver has seen of it. */
async function outcomeOf({ organizationId }: Tenant) {
  const deliveries = await sql<{ id: string; eventId: string; numbers: number[]; lost: number }[]>`
    select id, event_id, array(select number from attempts where delivery_id = d.id order by number) as numbers,
      (select count(*)::int from attempts where delivery_id = d.id and error_code = 'interrupted') as lost
    from deliveries d where organization_id = ${organizationId}
  `
  const calls = deliveries.map(({ id }) =>
    receiver.got.flatMap(({ headers }) =>
      headers['x-svc-delivery-id'] === id ? [Number(headers['x-svc-attempt'])] : [],
    ),
  )
  const told = await sql<{ type: string }[]>`
    select split_part(headers ->> 'type', '.', 3) as type from outbox
    where headers ->> 'organization' = ${organizationId} and headers ->> 'type' like 'webhook.subscription.%' order by seq
  `
  const dead = await sql<{ eventId: string; errorCode: string }[]>`
    select d.event_id, e.error_code from dead_deliveries e join deliveries d on d.id = e.id
    where d.organization_id = ${organizationId}
  `
  return {
    made: deliveries.map(({ eventId, numbers }) => `${nameOf(eventId)} ${numbers.length}`).toSorted(),
    /** Attempts whose outcome nobody knows, though no process has died. */
    lost: deliveries.filter(({ lost }) => lost > 0),
    /** Those that were made and not recorded, or the other way round. */
    unexplained: deliveries.filter(({ numbers }, n) => numbers.join() !== calls[n]?.join()),
    told: told.map(({ type }) => type),
    dead: dead.map(({ eventId, errorCode }) => `${nameOf(eventId)} ${errorCode}`).toSorted(),
  }
}

const nameOf = (eventId: string) => (eventId.startsWith('evt_') ? 'test' : eventId)

/** Of a fresh organization. */
async function begin({ run, made, first = [] }: Flow) {
  const acts = webhooks.another()
  const { id } = await acts.subscribe({ url: receiver.url })
  const withKey = (key: string) => ({ ...acts.caller, idempotency: { key, fingerprint: key } })
  const tenant = { ...acts, id, withKey }
  const left = [...first]
  out = Promise.withResolvers()
  receiver.respondWith((response, received, n) => (left.shift() ?? answer(200))(response, received, n))
  return {
    act: () => run(tenant),
    settle: () => quiet(tenant, made.length),
    seen: () => outcomeOf(tenant),
  }
}

testEachStep(
  () => service.steps,
  Object.fromEntries(
    Object.entries(flows).map(([name, flow]) => {
      const { made, told = [], dead } = flow
      const expected = { made, lost: [], unexplained: [], told, ...(dead && { dead }) }
      return [name, { begin: () => begin(flow), expected }]
    }),
  ),
)
