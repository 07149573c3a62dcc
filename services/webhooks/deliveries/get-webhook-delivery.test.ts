import { systemCaller } from '@app/shared/bus/ask.ts'
import { toProblem } from '@app/shared/api/problem.ts'
import { newId } from '@app/shared/values/ids.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { payloadGone } from '../attempts/outcome.ts'
import { type TestWebhooks, testWebhooks } from '../testing/app.ts'
import { getWebhookDelivery } from './get-webhook-delivery.ts'
import { replayWebhookDelivery } from './replay-webhook-delivery.ts'

let webhooks: TestWebhooks
beforeAll(async () => {
  webhooks = await testWebhooks()
})
afterAll(() => webhooks.close())

test.each([getWebhookDelivery, replayWebhookDelivery])(
  'an id of a time that no clock shows is nobody’s: %o',
  async (ask) => {
    const input = { params: { id: 'wbd_7ZZZZZZZZZZZZZZZZZZZZZZZZZ' }, query: {}, body: undefined }
    const work = ask(webhooks, input, systemCaller(webhooks.organizationId))
    expect(await work.then(() => null, toProblem)).toMatchObject({ failure: 'resource_not_found' })
  },
)

describe('a delivery', () => {
  const at = (seconds: number) => new Date(Math.ceil(Date.now() / 1_000) * 1_000 + seconds * 1_000)

  /** One whose first attempt was refused, and whose second took too long. */
  async function triedTwice() {
    const { sql, organizationId } = webhooks
    const row = { id: newId('wbd'), organization_id: organizationId, subscription_id: newId('wbs') }
    const event = { event_type: 'message.received', event_id: newId('evt') }
    const attempts = [
      { number: 1, started_at: at(-900), error_code: 'connection_refused', error_message: 'It was refused.' },
      { number: 2, started_at: at(-600), error_code: 'timeout', error_message: 'It took too long.' },
    ]
    await sql`insert into deliveries ${sql({ ...row, ...event })}`
    await sql`insert into attempts ${sql(attempts.map((one) => ({ ...one, delivery_id: row.id })))}`
    return { row, due: { ...row, ...event, event_at: at(-1_000), due_at: at(300) }, second: attempts[1]?.started_at }
  }

  test('that failed is tried again when it is due, and not before its endpoint may be asked', async () => {
    const { sql, organizationId } = webhooks
    const { row, due, second } = await triedTwice()
    await sql`insert into due_deliveries ${sql({ ...due, tried: true, attempts: 2 })}`
    const told = {
      status: 'failed',
      attempt_count: 2,
      last_attempt_at: second?.toISOString(),
      next_attempt_at: due.due_at.toISOString(),
      error_code: 'timeout',
      error_message: 'It took too long.',
    }
    expect(await webhooks.delivery(row.id)).toMatchObject(told)
    const paced = { id: row.subscription_id, grp: organizationId, paced_until: at(900) }
    await sql`insert into lanes ${sql(paced)}`
    expect(await webhooks.delivery(row.id)).toMatchObject({
      ...told,
      next_attempt_at: paced.paced_until.toISOString(),
    })
  })

  test('of which an attempt is under way counts that one', async () => {
    const { sql } = webhooks
    const { row, due } = await triedTwice()
    const begunAt = at(-1)
    await sql`insert into due_deliveries ${sql({ ...due, tried: true, attempts: 3, begun_at: begunAt })}`
    expect(await webhooks.delivery(row.id)).toMatchObject({
      attempt_count: 3,
      last_attempt_at: begunAt.toISOString(),
    })
  })

  test('of which an attempt was broken off tells that one, for as long as no other follows', async () => {
    const { sql } = webhooks
    const { row, due } = await triedTwice()
    const begunAt = at(-30)
    await sql`insert into due_deliveries ${sql({ ...due, tried: true, attempts: 3, begun_at: begunAt })}`
    const told = {
      status: 'failed',
      attempt_count: 3,
      last_attempt_at: begunAt.toISOString(),
      response_status: null,
      error_code: 'interrupted',
      error_message: 'We stopped during this attempt; its outcome is unknown.',
    }
    expect(await webhooks.delivery(row.id)).toMatchObject(told)
    expect(await webhooks.deliveries({ event_id: due.event_id })).toMatchObject([told])
  })

  test('that expired says of what: it waited too long, or its payload was gone when it was tried', async () => {
    const { sql, organizationId } = webhooks
    const { row } = await triedTwice()
    const dead = { id: row.id, organization_id: organizationId, subscription_id: row.subscription_id }
    await sql`insert into dead_deliveries ${sql({ ...dead, error_code: 'expired' })}`
    const told = { status: 'dead', error_code: 'expired' }
    expect(await webhooks.delivery(row.id)).toMatchObject({
      ...told,
      error_message: 'It waited too long for its endpoint.',
    })
    const { attempt } = payloadGone(Date.now())
    await sql`
      insert into attempts ${sql({ delivery_id: row.id, number: 3, started_at: at(0), error_code: attempt.error?.code, error_message: attempt.error?.message })}
    `
    expect(await webhooks.delivery(row.id)).toMatchObject({ ...told, error_message: 'The payload is no longer kept.' })
  })

  test('that was not tried yet tells no next attempt', async () => {
    const { sql } = webhooks
    const { row, due } = await triedTwice()
    await sql`delete from attempts where delivery_id = ${row.id}`
    await sql`insert into due_deliveries ${sql(due)}`
    expect(await webhooks.delivery(row.id)).toMatchObject({
      status: 'pending',
      attempt_count: 0,
      last_attempt_at: null,
      next_attempt_at: null,
    })
  })

  test.each([
    ['expired', 'expired', 'It waited too long for its endpoint.'],
    [null, 'timeout', 'It took too long.'],
  ])('that was given up tells why it was (%s), and else what its last attempt came to', async (code, why, message) => {
    const { sql } = webhooks
    const { row } = await triedTwice()
    await sql`insert into dead_deliveries ${sql({ ...row, event_type: 'message.received', error_code: code })}`
    expect(await webhooks.delivery(row.id)).toMatchObject({
      status: 'dead',
      attempt_count: 2,
      next_attempt_at: null,
      error_code: why,
      error_message: message,
    })
  })

  test('that is a replay shows the payload of its event, which is older', async () => {
    const { sql, organizationId } = webhooks
    const { row } = await triedTwice()
    const event = { at: at(-86_400), organization_id: organizationId, event_id: newId('evt') }
    await sql`insert into events ${sql({ ...event, type: 'message.received', source: 'svc', payload: '{"old":true}' })}`
    await sql`update deliveries set event_at = ${event.at}, event_id = ${event.event_id} where id = ${row.id}`
    expect(await webhooks.delivery(row.id)).toMatchObject({ payload: { old: true } })
  })
})
