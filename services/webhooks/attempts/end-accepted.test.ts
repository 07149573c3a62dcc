import type { ServerResponse } from 'node:http'
import { newId } from '@app/shared/values/ids.ts'
import { until } from '@app/test/until.ts'
import { beforeAll, beforeEach, expect, test } from 'vitest'
import { replayWebhookDelivery } from '../deliveries/replay-webhook-delivery.ts'
import { explainDelivery } from '../explain/explain-deliveries.ts'
import type { TestWebhooks } from '../testing/app.ts'
import type { Receiver } from '../testing/receiver.ts'
import { webhooksAndReceiver } from '../testing/webhooks-and-receiver.ts'
import { mostTries } from './schedule.ts'

let webhooks: TestWebhooks
let receiver: Receiver
/** Requests that are not answered yet. */
let held: ServerResponse[]
let replayId: string

const both = webhooksAndReceiver()
beforeAll(() => void ({ webhooks, receiver } = both))
beforeEach(async () => {
  await webhooks.clear()
  receiver.got.length = 0
  held = []
  receiver.respondWith((response) => void held.push(response))
  replayId = newId('rpl')
})

const requests = (count: number) => until(() => expect(held).toHaveLength(count))

/** A delivery, of a replay, that is at its endpoint for the second time: whoever made the first attempt was taken for dead. */
async function takenForBrokenOff({ tries = 0, event = {} } = {}) {
  const { sql, organizationId } = webhooks
  const { id: subscriptionId } = await webhooks.subscribe({ url: receiver.url })
  await sql`
    insert into replays (id, organization_id, subscription_id, source, position, end_id, matched, enqueued, created_at, finished_at)
    values (${replayId}, ${organizationId}, ${subscriptionId}, 'dead', '', '', 1, 1, now(), now())
  `
  await sql`update subscriptions set status = 'paused'`
  await webhooks.emit(event)
  await until(async () => expect(await webhooks.deliveries()).toHaveLength(1))
  await sql`update due_deliveries set replay_id = ${replayId}, tries = ${tries}`
  await sql`update subscriptions set status = 'active'`
  await webhooks.hurry()
  await requests(1)
  await sql`update due_deliveries set begun_at = begun_at - interval '30 s'`
  await sql`update lanes set held_until = '-infinity', due_at = now(), arrivals = arrivals + 1`
  webhooks.attempts.wake()
  await requests(2)
  const [delivery] = await webhooks.deliveries()
  return delivery?.id ?? ''
}

const answer = (n: number, status: number) => held[n - 1]?.writeHead(status).end()
const isNow = (id: string, told: object) => until(async () => expect(await webhooks.delivery(id)).toMatchObject(told))
const attemptsOf = (id: string) =>
  webhooks.sql`select number, response_status from attempts where delivery_id = ${id} order by number`
const counted = () => webhooks.sql`select succeeded, failed from replays where id = ${replayId}`

async function standingOf(id: string) {
  const { history } = await webhooks.ask(explainDelivery, { body: { id } })
  return history.at(-1)?.what
}

const accepted = {
  status: 'succeeded',
  attempt_count: 1,
  response_status: 200,
  error_code: null,
  next_attempt_at: null,
}

test.each([
  ['was given up', mostTries - 1, 'dead'],
  ['is to be tried again', 0, 'failed'],
])('what was accepted in an attempt that is heard of when it %s is delivered', async (_, tries, status) => {
  const id = await takenForBrokenOff({ tries })
  answer(2, 500)
  await isNow(id, { status, response_status: 500 })
  answer(1, 200)
  await isNow(id, accepted)
  expect(await standingOf(id)).toBe('is succeeded')
  expect(await attemptsOf(id)).toEqual([
    { number: 1, responseStatus: 200 },
    { number: 2, responseStatus: 500 },
  ])
  expect(await counted()).toEqual([{ succeeded: 1, failed: 0 }])
  expect(await webhooks.sql`select id from due_deliveries union all select id from dead_deliveries`).toEqual([])
})

test('what was accepted in an attempt that is heard of beside the next one is delivered, whatever that one comes to', async () => {
  const id = await takenForBrokenOff({ tries: mostTries - 1 })
  answer(1, 200)
  await isNow(id, accepted)
  expect(await attemptsOf(id)).toMatchObject([{ responseStatus: 200 }, { responseStatus: null }])
  answer(2, 500)
  await until(async () =>
    expect(await attemptsOf(id)).toMatchObject([{ responseStatus: 200 }, { responseStatus: 500 }]),
  )
  expect(await webhooks.delivery(id)).toMatchObject(accepted)
  expect(await counted()).toEqual([{ succeeded: 1, failed: 0 }])
})

test('what waits in a customer’s line behind one that was accepted goes out once that is heard of', async () => {
  const event = { line: 'cus_1' }
  const id = await takenForBrokenOff({ event })
  answer(2, 500)
  await isNow(id, { status: 'failed' })
  await webhooks.sql`update due_deliveries set due_at = now() + interval '1 hour'`
  await webhooks.emit(event)
  await until(async () => expect(await webhooks.deliveries()).toHaveLength(2))
  answer(1, 200)
  await requests(3)
  answer(3, 200)
})

test('what was given up and replayed stays dead, though it is heard then that it was accepted', async () => {
  const id = await takenForBrokenOff({ tries: mostTries - 1 })
  answer(2, 500)
  await isNow(id, { status: 'dead' })
  await webhooks.ask(replayWebhookDelivery, { params: { id } })
  answer(1, 200)
  await until(async () =>
    expect(await attemptsOf(id)).toMatchObject([{ responseStatus: 200 }, { responseStatus: 500 }]),
  )
  expect(await webhooks.delivery(id)).toMatchObject({ status: 'dead' })
  expect(await standingOf(id)).toBe('is dead: that attempt 1 was accepted was heard of when it had been replayed')
  expect(await counted()).toEqual([{ succeeded: 0, failed: 1 }])
  await requests(3)
  answer(3, 200)
  await until(async () => expect(await webhooks.deliveries({ status: 'succeeded' })).toHaveLength(1))
})

test('what is heard of late changes nothing of another replay, nor of another delivery that was given up', async () => {
  const { sql, organizationId } = webhooks
  const [other, dead] = [newId('rpl'), newId('wbd')]
  await sql`
    insert into replays (id, organization_id, subscription_id, source, position, end_id, matched, enqueued, failed, created_at, finished_at)
    values (${other}, ${organizationId}, 'wbs_other', 'dead', '', '', 1, 1, 1, now(), now())
  `
  await sql`
    insert into dead_deliveries (id, organization_id, subscription_id, event_type)
    values (${dead}, ${organizationId}, 'wbs_other', 'message.received')
  `
  const id = await takenForBrokenOff({ tries: mostTries - 1 })
  const ofOther = () => sql`select succeeded, failed from replays where id = ${other}`
  answer(2, 500)
  await isNow(id, { status: 'dead' })
  expect([await counted(), await ofOther()]).toEqual([[{ succeeded: 0, failed: 1 }], [{ succeeded: 0, failed: 1 }]])
  answer(1, 200)
  await isNow(id, accepted)
  expect([await counted(), await ofOther()]).toEqual([[{ succeeded: 1, failed: 0 }], [{ succeeded: 0, failed: 1 }]])
  expect(await sql`select id from dead_deliveries`).toEqual([{ id: dead }])
})
