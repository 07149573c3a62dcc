import { createHmac, randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { dumpDatabase } from '../../database-dump.ts'
import { adminOf } from '../../journeys/admin.ts'
import { clientOf, type Json, newPhone, until } from '../../journeys/client.ts'
import { type Receiver, startReceiver } from '../../journeys/receiver.ts'
import { newFolder, type StartedStack, startStack } from '../../journeys/start-stack.ts'

let dataDir: string
let stack: StartedStack
let receiver: Receiver
beforeEach(async () => {
  dataDir = newFolder()
  stack = await startStack([], dataDir)
  receiver = await startReceiver()
})
afterEach(async () => {
  await stack.remove()
  receiver.close()
})

const secretsFile = () => join(dataDir, 'secrets.json')
const readSecrets = () => JSON.parse(readFileSync(secretsFile(), 'utf8')) as { sealKeys: string }
const newKey = (id: string) => `${id}:${randomBytes(32).toString('base64')}`

/** As after new settings: everything stops and starts with this ring. */
async function restartWith(...keys: string[]) {
  await stack.stop()
  writeFileSync(secretsFile(), JSON.stringify({ ...readSecrets(), sealKeys: keys.join(',') }))
  stack = await startStack([], dataDir)
}

/** Sends to one after the other, with a key each, until told to stop; answers the ids of what was accepted. */
function startSending(phones: string[]) {
  let over = false
  const sending = (async () => {
    const { sendText } = clientOf(stack.read())
    const ids: string[] = []
    while (!over) {
      const n = ids.length
      const to = phones[n % phones.length] ?? ''
      const { status, body } = await sendText(`n${n}`, { to, headers: { 'idempotency-key': `rotate ${to} ${n}` } })
      expect(status).toBe(200)
      ids.push(body.data.id)
      await sleep(25)
    }
    return ids
  })()
  return async () => {
    over = true
    return sending
  }
}

/** Each is sent, and the subscriber knows. */
const untilTold = (ids: string[]) =>
  until(() => {
    const told = receiver.of('message.sent').map(({ body }) => body.data.message.id)
    expect(ids.filter((id) => !told.includes(id))).toEqual([])
  })

const isSigned = (secret: string, { headers, raw }: Receiver['deliveries'][number]) => {
  const { t, v1 } = Object.fromEntries((headers['x-svc-signature'] ?? '').split(',').map((part) => part.split('=')))
  return createHmac('sha256', secret).update(`${t}.${raw}`).digest('hex') === v1
}

const sealedWith = async (key: string) =>
  (await dumpDatabase(stack.read().postgres_url)).filter(({ text }) =>
    new RegExp(`\\b${key}\\.[\\w-]{16}\\.[\\w-]{16}`).test(text),
  )

test(
  'a sealing key is replaced while sends and webhooks go on: everything is sealed again, and without the old key all works',
  { timeout: 240_000 },
  async () => {
    const { sealKeys: k1 } = readSecrets()
    const k2 = newKey('k2')
    const first = clientOf(stack.read())
    const phones = Array.from({ length: 12 }, newPhone)
    await Promise.all(phones.map((phone) => first.inbound(phone, 'hello')))
    const subscribing = {
      body: { url: receiver.url, events: ['message.sent'] },
      headers: { 'idempotency-key': 'subscribe once' },
    }
    const subscribed = await first.api('POST', '/webhook_subscriptions', subscribing)
    expect(subscribed.status).toBe(201)
    const secret: string = subscribed.body.data.initial_secret

    await restartWith(k1, k2)
    await restartWith(k2, k1)
    expect((await sealedWith('k1')).length).toBeGreaterThan(0)
    const admin = adminOf(dataDir)
    const before = await admin('secrets', 'count')
    expect(before).toMatchObject({ removable: [], instances: { webhooks: [['k2', 'k1']] } })

    const stopSending = startSending(phones)
    await sleep(500)
    const done = await admin('secrets', 'reseal')
    await sleep(500)
    const ids = await stopSending()
    expect(done).toMatchObject({ current: 'k2', unopened: 0, removable: ['k1'] })
    const old = before.secrets.filter(({ state }: Json) => state === 'old')
    expect(old.map(({ table }: Json) => table).toSorted()).toEqual([
      'accounts',
      'idempotency.keys',
      'secrets',
      'senders',
    ])
    expect(done.resealed).toBe(old.reduce((sum: number, { count }: Json) => sum + count, 0))
    expect(await admin('secrets', 'reseal')).toMatchObject({ resealed: 0 })
    // Events tell of a moment, and are gone after four days: what comes of them is sealed again when it is taken over.
    const left = (await sealedWith('k1')).filter(({ table }) => !/\.outbox/.test(table))
    expect(left.map(({ table }) => table)).toEqual([])
    await untilTold(ids)
    const sent: string[] = (await clientOf(stack.read()).sent()).map(({ body }) => body.biz_opaque_callback_data)
    expect(sent).toHaveLength(ids.length)
    expect(new Set(sent)).toEqual(new Set(ids))

    await restartWith(k2)
    expect(await admin('secrets', 'count')).toMatchObject({ removable: [], instances: { platform: [['k2']] } })
    const client = clientOf(stack.read())
    const replay = await client.api('POST', '/webhook_subscriptions', subscribing)
    expect(replay.headers['idempotent-replayed']).toBe('true')
    expect(replay.body.data.initial_secret).toBe(secret)
    const { body } = await client.sendText('without the old key', { to: phones[0] ?? '' })
    await untilTold([body.data.id])
    expect(receiver.deliveries.filter((delivery) => !isSigned(secret, delivery))).toEqual([])
  },
)

test('a key that is taken out too early is told of, and what needs it waits until it is back', { timeout: 240_000 }, async () => {
  const { sealKeys: k1 } = readSecrets()
  const k2 = newKey('k2')
  const body = { url: receiver.url, events: ['message.sent'] }
  expect((await clientOf(stack.read()).api('POST', '/webhook_subscriptions', { body })).status).toBe(201)
  await restartWith(k2)
  const admin = adminOf(dataDir)
  const { secrets } = await admin('secrets', 'count')
  expect(secrets.filter(({ state }: Json) => state === 'missing').map(({ table }: Json) => table)).toEqual(['accounts', 'senders', 'secrets'])
  const log = () => readFileSync(join(dataDir, 'logs/webhooks.log'), 'utf8')
  await until(() => expect(log()).toContain('stored secrets need a key that is not in SEAL_KEYS'))
  const { body: accepted } = await clientOf(stack.read()).sendText('waits for its key')
  expect(accepted.data.status).toBe('queued')

  await restartWith(k2, k1)
  await until(async () => {
    const { api, phone } = clientOf(stack.read())
    expect((await api('GET', `/${phone}/messages/${accepted.data.id}`)).body.data.status).toBe('read')
  }, 70_000)
  await untilTold([accepted.data.id])
  expect((await admin('secrets', 'reseal')).removable).toEqual(['k1'])
}) // prettier-ignore
