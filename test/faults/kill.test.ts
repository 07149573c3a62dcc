import { setTimeout as sleep } from 'node:timers/promises'
import { request } from 'undici'
import { expect, test } from 'vitest'
import { clientOf, newPhone, until } from '../journeys/client.ts'
import { openWindows } from './load/open-windows.ts'
import { kill, ownStack } from './own-stack.ts'

const own = ownStack()

interface Accepted {
  id: string
  conversation: string
  /** Its place in its conversation, by acceptance. */
  n: number
}

const conversations = 20
const sendsEach = 10

/** As an integrator would: one key a send, the same key again until there is an answer. */
async function sendSurely(client: ReturnType<typeof clientOf>, to: string, text: string) {
  const headers = { 'idempotency-key': `kill ${to} ${text}` }
  for (let attempt = 0; attempt < 200; attempt++) {
    try {
      const { status, headers: answered, body } = await client.sendText(text, { to, headers })
      if (status === 200) return { ...body.data, replayed: answered['idempotent-replayed'] === 'true' }
      if (status < 409) throw new Error(`refused: ${status} ${JSON.stringify(body)}`)
    } catch (err) {
      if (err instanceof Error && err.message.startsWith('refused')) throw err
    }
    await sleep(100)
  }
  throw new Error(`no answer for ${text}`)
}

/** All messages of the number, by their ids. A gateway or a service that is just gone answers the next time. */
async function listMessages({ api, phone }: ReturnType<typeof clientOf>) {
  const messages = new Map<string, { status: string; error?: { code: string } }>()
  let cursor: string | null = ''
  while (cursor !== null) {
    const { status, body } = await api('GET', `/${phone}/messages?limit=100${cursor && `&cursor=${cursor}`}`)
    expect(status).toBe(200)
    for (const message of body.data) messages.set(message.id, message)
    cursor = body.next_cursor
  }
  return messages
}

test(
  'kill -9 of messaging, webhooks and gateway under 200 sends: nothing lost, nothing twice, order kept, all explained',
  { timeout: 240_000 },
  async () => {
    const client = clientOf(own.stack.read())
    const created = await client.api('POST', '/webhook_subscriptions', {
      body: { url: own.receiver.url, events: ['message.sent', 'message.status', 'message.received'] },
    })
    expect(created.status).toBe(201)
    const phones = Array.from({ length: conversations }, newPhone)
    const inbounds = await Promise.all(phones.map((phone) => client.inbound(phone, 'hello')))
    await until(() => expect(own.receiver.of('message.received')).toHaveLength(inbounds.length))

    const accepted: Accepted[] = []
    const sending = phones.map(async (to) => {
      for (let n = 0; n < sendsEach; n++) {
        const { id, conversation_id: conversation } = await sendSurely(client, to, `n${n}`)
        accepted.push({ id, conversation, n })
        await sleep(150)
      }
    })
    for (const service of ['messaging', 'webhooks', 'gateway', 'messaging', 'webhooks']) {
      await sleep(250)
      await kill(own, service)
    }
    await Promise.all(sending)
    expect(new Set(accepted.map(({ id }) => id)).size).toBe(conversations * sendsEach)

    const outcomes = await until(async () => {
      const listed = await listMessages(client)
      const ended = accepted.flatMap(({ id }) => {
        const message = listed.get(id)
        return message && ['read', 'failed'].includes(message.status) ? [[id, message] as const] : []
      })
      expect(ended.length).toBe(accepted.length)
      return new Map(ended)
    }, 150_000)

    const sent = (await client.sent()).map(({ body }) => body.biz_opaque_callback_data as string)
    const places = new Map(accepted.map((message) => [message.id, message]))
    const ours = sent.filter((id) => places.has(id))
    expect(ours.length).toBe(new Set(ours).size)
    for (const conversation of new Set(accepted.map((message) => message.conversation))) {
      const order = ours
        .flatMap((id) => places.get(id) ?? [])
        .filter((message) => message.conversation === conversation)
      expect(order.map(({ n }) => n)).toEqual(order.map(({ n }) => n).toSorted((a, b) => a - b))
    }
    const failed = [...outcomes].filter(([, { status }]) => status === 'failed')
    expect(failed.every(([id, { error }]) => error?.code === 'delivery_unknown' && !ours.includes(id))).toBe(true)
    // Fewer than were in flight at the two kills of messaging: at most one of each conversation.
    expect(failed.length).toBeLessThan(2 * conversations)
    expect(ours.length + failed.length).toBe(accepted.length)

    const expected = accepted.flatMap(({ id }) =>
      outcomes.get(id)?.status === 'failed' ? [`${id}:failed`] : [`${id}:sent`],
    )
    await until(() => {
      const got = new Set(own.receiver.deliveries.map(({ headers }) => headers['x-svc-event-id']))
      expect(expected.filter((event) => !got.has(event))).toEqual([])
      const delivered = own.receiver
        .of('message.status')
        .filter(({ headers }) => headers['x-svc-event-id']?.endsWith(':read'))
      expect(new Set(delivered.map(({ headers }) => headers['x-svc-event-id'])).size).toBeGreaterThanOrEqual(
        ours.length,
      )
    }, 60_000)
  },
)

/** Requests that the gateway has handed on, and that are not answered. */
async function unanswered(): Promise<number> {
  const [gateway] = own.stack.read().services['gateway'] ?? []
  const page = await (await request(`${gateway?.url}/metrics`)).body.text()
  return Number(/^svc_http_requests_in_flight(?:\{[^}]*\})? (\d+)$/m.exec(page)?.[1])
}

const burst = 200

test(`kill -9 of the gateway with ${burst} sends unanswered: repeated with their keys, each is one message and goes out once`, async () => {
  const { client, phones } = await openWindows(own.stack.read(), conversations)
  const messaging = own.stack.read().services['messaging']?.[0]?.pid ?? 0
  // Frozen, it takes what it is asked and answers nobody.
  process.kill(messaging, 'SIGSTOP')
  const texts = Array.from({ length: burst }, (_, n) => `burst ${n}`)
  const sending = texts.map((text, n) => sendSurely(client, phones[n % conversations] ?? '', text))
  await until(async () => expect(await unanswered()).toBe(burst))
  const killing = kill(own, 'gateway')
  process.kill(messaging, 'SIGCONT')
  await killing

  const accepted = await Promise.all(sending)
  const ids = new Set(accepted.map(({ id }) => id))
  expect(ids.size).toBe(burst)
  // They were done while nobody was there to hear of it.
  expect(accepted.filter(({ replayed }) => !replayed)).toEqual([])
  await until(async () => {
    const { body } = await client.api('GET', `/${client.phone}/messages?status=pending`)
    expect(body.data).toEqual([])
  }, 60_000)
  const sent = (await client.sent()).filter(({ body }) => texts.includes(body.text.body))
  expect(sent).toHaveLength(burst)
  expect(new Set(sent.map(({ body }) => body.biz_opaque_callback_data))).toEqual(ids)
})
