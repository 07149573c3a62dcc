import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { adminOf } from '../../journeys/admin.ts'
import { clientOf, type Json, until } from '../../journeys/client.ts'
import { newFolder, ofEach, type StartedStack, startStack } from '../../journeys/start-stack.ts'
import { startPrivateServers } from '../../servers.ts'
import { live } from '../load/live.ts'
import { openWindows } from '../load/open-windows.ts'
import { passPark } from '../load/pass-park.ts'
import { settle } from '../load/settle.ts'
import { tellFailed } from '../load/tell-failed.ts'
import type { Subscriber } from '../load/subscriber.ts'
import { type Proxy, startProxy } from '../nemesis/proxy.ts'
import { type PostgresPair, startPostgresPair } from '../postgres-pair.ts'
import { prepareRestored } from '../prepare-restored.ts'

let folder: string
let pair: PostgresPair | undefined
let proxy: Proxy | undefined
let servers: Awaited<ReturnType<typeof startPrivateServers>> | undefined
let stack: StartedStack | undefined
let subscriber: Subscriber | undefined

beforeEach(async ({ skip }) => {
  folder = newFolder()
  pair = await startPostgresPair(join(folder, 'pair'))
  skip(!pair, 'There is no Postgres on this machine.')
  servers = await startPrivateServers(join(folder, 'servers'), ['redis', 'nats'])
  mkdirSync(join(folder, 'stack'))
})
afterEach(async () => {
  subscriber?.close()
  await stack?.stop()
  proxy?.close()
  proxy = undefined
  await servers?.stop()
  await pair?.stop()
  rmSync(folder, { recursive: true, force: true })
})

/** The services, at the address that leads to the primary. */
async function start(replicas: string) {
  proxy ??= await startProxy(pair?.url ?? '')
  const { redisUrl: REDIS_URL = '', natsUrl: NATS_URL = '' } = servers ?? {}
  const given = { DATABASE_URL: proxy.url, REDIS_URL, NATS_URL }
  stack = await startStack(['--replicas', replicas], join(folder, 'stack'), given)
  return { stack, proxy }
}

test('a Postgres that dies under load is replaced by its synchronous standby: every law holds', async () => {
  if (!pair) return
  const { killPrimary, promote, standbyUrl, makeSynchronous } = pair
  await makeSynchronous()
  const place = await start(ofEach(2))
  const life = await live(place, { seconds: 20 }, async () => {
    await sleep(5_000)
    await killPrimary()
    // The address leads to the standby before it is promoted: nobody takes it for the primary.
    place.proxy.leadTo(standbyUrl)
    await sleep(2_000)
    await promote()
  })
  subscriber = life.subscriber
  expect(tellFailed(life.scene.history).length).toBeGreaterThan(0)
  expect(await settle(life.scene, life.people, 120_000)).toEqual([])
})

test('an asynchronous standby that lacks the last commits, treated as an earlier moment: nothing is sent twice, and all works', async () => {
  if (!pair) return
  const { cutOff, killPrimary, promote, standbyUrl } = pair
  const place = await start('messaging=1')
  const { client: before, phones } = await openWindows(place.stack.read(), 2)
  const [usual = '', unlucky = ''] = phones
  const untilStatus = ({ api, phone }: typeof before, id: string, wanted: object) =>
    until(async () => expect((await api('GET', `/${phone}/messages/${id}`)).body.data).toMatchObject(wanted), 30_000)
  const send = async (client: typeof before, text: string, to: string): Promise<string> =>
    (await client.sendText(text, { to, headers: { 'idempotency-key': text } })).body.data.id
  const settled = await send(before, 'settled', usual)
  await untilStatus(before, settled, { status: 'read' })
  await before.control('/control/faults', { match: { to: unlucky }, fault: { kind: 'error', code: 131016 } })
  const refused = await send(before, 'refused', unlucky)
  // It is tried again in 5 s.
  await sleep(1_500)
  const at = Date.now()
  await cutOff()
  const forgotten = await send(before, 'late', usual)
  for (const id of [forgotten, refused]) await untilStatus(before, id, { status: 'read' })

  await killPrimary()
  await place.stack.stop()
  await promote()
  place.proxy.leadTo(standbyUrl)
  expect(await prepareRestored({ databaseUrl: standbyUrl, natsUrl: servers?.natsUrl ?? '' })).toBe(1)
  const again = await start('messaging=1')
  const since = new Date(at - 60 * 60_000).toISOString()
  for (const what of ['events', 'callbacks']) await adminOf(again.stack.dataDir)(what, 'redrive', '--since', since)
  const client = clientOf(again.stack.read())
  await untilStatus(client, settled, { status: 'read' })
  expect((await client.api('GET', `/${client.phone}/messages/${forgotten}`)).status).toBe(404)
  await passPark(standbyUrl, refused)
  await untilStatus(client, refused, { status: 'failed', error: { code: 'delivery_unknown' } })
  const repeated = await send(client, 'late', usual)
  expect(repeated).not.toBe(forgotten)
  const fresh = [repeated, await send(client, 'after', unlucky)]
  for (const id of fresh) await untilStatus(client, id, { status: 'read' })
  // The platform was restarted too, and remembers what came since.
  const sentSince = (await client.sent()).map(({ body }: Json) => body.biz_opaque_callback_data)
  expect(new Set(sentSince)).toEqual(new Set(fresh))
  expect(sentSince).toHaveLength(fresh.length)
})
