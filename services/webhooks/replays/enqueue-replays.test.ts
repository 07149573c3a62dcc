import { firstIdAt, newId, timeOf } from '@app/shared/values/ids.ts'
import { lockWaits } from '@app/test/lock-waits.ts'
import { until } from '@app/test/until.ts'
import { beforeEach, describe, expect, test } from 'vitest'
import type { TestWebhooks } from '../testing/app.ts'
import { answer, type Receiver } from '../testing/receiver.ts'
import { replaysOfOne } from '../testing/replays.ts'
import { shareOf, startReplays } from './enqueue-replays.ts'

const one = replaysOfOne()
const { die, replay, replayMany, completed, pause, gotIds } = one
let webhooks: TestWebhooks
let receiver: Receiver
let id: string
beforeEach(() => void ({ webhooks, receiver, id } = one))

describe('a replay of many', () => {
  test('of failed ones sends them now, and not at their time', async () => {
    receiver.respondWith(answer(500))
    await webhooks.emit({}, {})
    await until(async () => expect(await webhooks.deliveries({ status: 'failed' })).toHaveLength(2))
    await webhooks.sql`update due_deliveries set due_at = now() + interval '1 hour'`
    receiver.respondWith(answer(200))
    expect(await replayMany({ status: 'failed', event_types: ['contact.created'], dry_run: true })).toMatchObject({
      matched: 0,
    })
    await pause('paused')
    await webhooks.emit({})
    await until(async () => expect(await webhooks.deliveries({ status: 'pending' })).toHaveLength(1))
    const made = await replayMany({ status: 'failed', event_types: ['message.received'] })
    expect(made).toMatchObject({ matched: 2 })
    await pause('active')
    await until(async () => expect(await replay(made.id)).toMatchObject({ status: 'completed', succeeded: 2 }))
  })

  test('of failed ones sends none of its own again, though it was made by a clock that is ahead', async () => {
    receiver.respondWith(answer(500))
    // Five in a row would be a pause, in which a sixth waits.
    for (const failed of [3, 6]) {
      await webhooks.emit({}, {}, {})
      await until(async () => expect(await webhooks.deliveries({ status: 'failed' })).toHaveLength(failed))
      await webhooks.sql`update due_deliveries set due_at = now() + interval '1 hour'`
      await webhooks.sql`update lanes set failures = 0, held_until = '-infinity', paced_until = '-infinity'`
    }
    const job = newId('rpl')
    const endId = firstIdAt('wbd', new Date(Date.now() + 20_000))
    await webhooks.sql`
      insert into replays (id, organization_id, subscription_id, source, position, end_id, matched, created_at)
      values (${job}, ${webhooks.organizationId}, ${id}, 'failed', 'wbd_', ${endId}, 6, now())
    `
    webhooks.replays.wake()
    await until(async () => expect(await replay(job)).toMatchObject({ status: 'completed', enqueued: 6 }))
  })

  test('never replays what died after it began, nor its own', async () => {
    await die(8)
    await pause('paused')
    const made = await replayMany()
    await until(async () => expect(await replay(made.id)).toMatchObject({ status: 'running', enqueued: 5 }))
    await die(3, { ageMs: 30_000 })
    await pause('active')
    await webhooks.hurry()
    await until(async () => expect(await replay(made.id)).toMatchObject({ status: 'completed', succeeded: 8 }))
    expect(receiver.got).toHaveLength(8)
  })

  test('counts as failed what is given up', async () => {
    await die(3)
    receiver.respondWith(answer(410))
    const made = await replayMany()
    await until(async () => expect(await replay(made.id)).toMatchObject({ enqueued: 3, succeeded: 0, failed: 3 }))
  })

  test('goes on where a process stopped in the middle, and repeats nothing', async () => {
    await die(60)
    receiver.respondWith((response) => void setTimeout(() => response.end(), 20))
    const first = startReplays(webhooks, webhooks.attempts.wake)
    const made = await replayMany()
    await until(async () => expect((await replay(made.id)).enqueued).toBeGreaterThan(5))
    await first.stop()
    await until(async () => expect(await replay(made.id)).toMatchObject({ status: 'completed', succeeded: 60 }))
    expect(new Set(gotIds()).size).toBe(60)
    expect(receiver.got).toHaveLength(60)
  })

  test('has a share of its own: a new event overtakes it', async () => {
    await die(300)
    receiver.respondWith((response) => void setTimeout(() => response.end(), 100))
    const made = await replayMany()
    await until(() => expect(receiver.got.length).toBeGreaterThan(5))
    const [fresh] = await webhooks.emit({})
    await until(() => expect(gotIds()).toContain(fresh))
    expect((await replay(made.id)).enqueued).toBeLessThan(200)
    const waiting = await webhooks.sql`select from due_deliveries where replay_id = ${made.id ?? ''} and not tried`
    expect(waiting.length).toBeLessThanOrEqual(5)
  })

  test('waits for none of other organizations, however many those are', async () => {
    await die(20)
    const jobs = Array.from({ length: 1_000 }, (_, n) => ({
      id: newId('rpl'),
      subscription: newId('wbs'),
      // In the order of ids they stand before ours.
      organization: `org_00${n % 5}`,
    }))
    await webhooks.sql`
      insert into replays (id, organization_id, subscription_id, source, position, end_id, matched, created_at, due_at)
      select id, organization, subscription, 'dead', 'wbd_', 'wbe_', 0, now(), now() - interval '1 minute'
      from json_to_recordset(${JSON.stringify(jobs)}::text::json) as j(id text, subscription text, organization text)
    `
    const made = await replayMany()
    await until(async () => expect(await replay(made.id)).toMatchObject({ status: 'completed', succeeded: 20 }))
    const others = await webhooks.sql`select from replays where finished_at is null`
    expect(others.length).toBeGreaterThan(500)
  })
})

test('a replay that another instance has in hand is left to that one, and not waited for', async () => {
  const { sql, organizationId } = webhooks
  const job = newId('rpl')
  await die(1)
  await sql`
    insert into replays (id, organization_id, subscription_id, source, position, end_id, matched, created_at, due_at)
    values (${job}, ${organizationId}, ${id}, 'dead', 'wbd_', 'wbe_', 1, now(), now() + interval '200 ms')
  `
  await sql.begin(async (tx) => {
    await tx`select from replays where id = ${job} for no key update`
    const isDue = () => tx`select from replays where due_at < clock_timestamp() - interval '200 ms'`
    await until(async () => expect(await isDue()).toHaveLength(1))
    expect(await lockWaits(tx)).toHaveLength(0)
  })
  expect(await completed(job)).toMatchObject({ enqueued: 1 })
})

test('a replay is looked at every few seconds while its subscription is paused and it may enqueue no more', async () => {
  await die(6)
  await pause('paused')
  await replayMany()
  const waits = () => webhooks.sql`select from replays where enqueued = 5 and due_at > now() + interval '3 seconds'`
  await until(async () => expect(await waits()).toHaveLength(1))
})

test('the replays of another organization, however many, take from those of this one the share of one', async () => {
  await webhooks.sql`
    insert into replays (id, organization_id, subscription_id, source, position, end_id, matched, created_at, due_at)
    select id, 'org_other', id, 'dead', 'wbd_', 'wbe_', 0, now(), now() + interval '1 hour'
    from unnest(${Array.from({ length: 20 }, () => newId('rpl'))}::text[]) id
  `
  await die(8)
  await pause('paused')
  const { id: replayId } = await replayMany()
  await until(async () => expect(await replay(replayId)).toMatchObject({ status: 'running', enqueued: 5 }))
})

test('a replay sends what was replayed before, as the event that it is', async () => {
  const { organizationId, sql } = webhooks
  const [row] = await die(1)
  const [again, event] = [newId('wbd'), row?.event ?? '']
  await sql`delete from dead_deliveries`
  await sql`
    insert into deliveries (id, organization_id, subscription_id, event_type, event_id, event_at, replayed_from)
    values (${again}, ${organizationId}, ${id}, 'message.received', ${event}, ${row?.at ?? null}, ${row?.id ?? ''})
  `
  await sql`insert into dead_deliveries (id, organization_id, subscription_id) values (${again}, ${organizationId}, ${id})`
  // Ids of this moment are those of deliveries that are made from now on.
  await until(() => expect(Date.now()).toBeGreaterThan(timeOf(again).getTime()))
  const made = await replayMany()
  await until(async () => expect(await replay(made.id)).toMatchObject({ matched: 1, succeeded: 1 }))
  expect(gotIds()).toEqual([event])
})

test('a replay goes on though its first ones fail', async () => {
  await die(8)
  receiver.respondWith(answer(500))
  const { id: replayId } = await replayMany()
  expect(await completed(replayId)).toMatchObject({ enqueued: 8, succeeded: 0, failed: 0 })
})

test('fifty may wait at a time, five of one replay: organizations share alike, and so do the replays of one, and each has a place', () => {
  const shares = [1, 10, 25, 50, 100].map((owners) => [1, 2, 10].map((jobs) => shareOf(owners, jobs)))
  expect(shares).toEqual([
    [5, 5, 5],
    [5, 2, 1],
    [2, 1, 1],
    [1, 1, 1],
    [1, 1, 1],
  ])
})
