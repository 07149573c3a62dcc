import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { call, systemCaller } from '@app/shared/bus/ask.ts'
import { serve } from '@app/shared/bus/rpc.ts'
import { listAccounts } from '@app/shared/contracts/platform.ts'
import {
  createWebhookSubscription,
  listWebhookSubscriptions,
  updateWebhookSubscription,
} from '@app/shared/contracts/webhooks.ts'
import { provision } from '@app/shared/events/provision.ts'
import { newId, timeOf } from '@app/shared/values/ids.ts'
import { compileCache } from '@app/test/compile-cache.ts'
import { listen } from '@app/test/listen.ts'
import { untilSomebodyWaits } from '@app/test/lock-waits.ts'
import { testService } from '@app/test/service.ts'
import { until } from '@app/test/until.ts'
import { expect, onTestFinished, test } from 'vitest'
import { openDeliveries } from './deliveries/open-deliveries.ts'

/** An endpoint, and how many calls it had. */
async function startEndpoint() {
  let calls = 0
  const server = createServer((_request, response) => {
    calls++
    response.end()
  })
  onTestFinished(() => server.close().closeAllConnections())
  return { calls: () => calls, url: `http://127.0.0.1:${await listen(server)}/` }
}

/** The process, what it logs, and its question to platform, which waits for `answer`. */
async function startWebhooks() {
  const beside = await testService('webhooks')
  await provision(beside.nc)
  const { promise, resolve: answer } = Promise.withResolvers<void>()
  let asked = 0
  const platform = await serve(
    { ...beside, name: 'platform' } as const,
    { listAccounts },
    {
      async listAccounts() {
        asked++
        await promise
        return { data: [], has_more: false, next_cursor: null }
      },
    },
  )
  const webhooks: ChildProcess = spawn(process.execPath, [join(import.meta.dirname, 'main.ts')], {
    env: {
      ...compileCache,
      DATABASE_URL: beside.databaseUrl,
      NATS_URL: beside.natsUrl,
      SEAL_KEYS: `k1:${Buffer.alloc(32, 1).toString('base64')}`,
      CURSOR_KEYS: `k1:${Buffer.alloc(32, 2).toString('base64')}`,
      EGRESS_ALLOW_CIDRS: '127.0.0.0/8',
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let said = ''
  webhooks.stdout?.on('data', (chunk: Buffer) => (said += chunk.toString()))
  onTestFinished(async () => {
    webhooks.kill('SIGKILL')
    answer()
    await platform.stop()
    await beside.close()
  })
  return { beside, webhooks, said: () => said, asked: () => asked, answer }
}

test('told to stop, it begins no delivery, although it still waits for the answer of a question', async () => {
  const { calls, url } = await startEndpoint()
  const { beside, webhooks, said, asked, answer } = await startWebhooks()
  const organizationId = newId('org')
  const subscribe = (more: object = {}) => {
    const body = { url, events: ['message.received' as const], ...more }
    return call(beside, createWebhookSubscription, { body }, systemCaller(organizationId))
  }
  const { id: subscriptionId } = await until(() => subscribe())

  const asking = subscribe({ phone_number_ids: ['106540352242922'] })
  await until(() => expect(asked()).toBe(1))
  const exited = once(webhooks, 'exit')
  webhooks.kill('SIGTERM')
  await until(() => expect(said()).toContain('"stopping"'))
  const [id, eventId] = [newId('wbd'), newId('evt')]
  const eventAt = timeOf(id)
  await beside.sql.begin(async (tx) => {
    await tx`
      insert into events (at, organization_id, event_id, type, source, payload)
      values (${eventAt}, ${organizationId}, ${eventId}, 'message.received', 'svc', ${'{}'})
    `
    await openDeliveries(tx, [{ id, organizationId, subscriptionId, eventType: 'message.received', eventId, eventAt }])
  })
  // A mailbox that takes work looks twice in that time.
  await sleep(3_000)
  expect(calls()).toBe(0)

  answer()
  await expect(asking).rejects.toMatchObject({ param: 'phone_number_ids[0]' })
  expect(await exited).toEqual([0, null])
})

test("one organization's changes leave connections for others", async () => {
  const { beside } = await startWebhooks()
  const owner = systemCaller(newId('org'))
  const body = { url: 'http://127.0.0.1:9/', events: ['message.received' as const] }
  const { id } = await until(() => call(beside, createWebhookSubscription, { body }, owner))
  let ended = 0
  const changes = await beside.sql.begin(async (tx) => {
    await tx`select from subscriptions where id = ${id} for update`
    const change = () =>
      call(beside, updateWebhookSubscription, { params: { id }, body: { description: 'x' } }, owner).finally(
        () => ended++,
      )
    const all = Promise.allSettled(Array.from({ length: 30 }, change))
    await untilSomebodyWaits(beside.sql, 8)
    const others = await call(beside, listWebhookSubscriptions, { query: {} }, systemCaller(newId('org')))
    expect([others.data, ended]).toEqual([[], 0])
    return { all }
  })
  await changes.all
})
