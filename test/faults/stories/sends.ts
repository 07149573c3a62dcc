import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import { type clientOf, until } from '../../journeys/client.ts'
import { openWindows } from '../load/open-windows.ts'
import type { Own } from '../own-stack.ts'

interface Accepted {
  id: string
  conversation: string
  /** Its place in its conversation, by acceptance. */
  n: number
}

type Client = ReturnType<typeof clientOf>

const conversations = 20
const sendsEach = 10
const everyMs = 150
/** A killed gateway that starts again on a busy machine is away for half a minute. */
const patienceMs = 90_000

/** As an integrator would: one key a send, the same key again until there is an answer. */
export async function sendSurely(client: Client, to: string, text: string) {
  const headers = { 'idempotency-key': `kill ${to} ${text}` }
  let last: unknown
  for (const endsAt = performance.now() + patienceMs; performance.now() < endsAt;) {
    try {
      const { status, headers: answered, body } = await client.sendText(text, { to, headers })
      if (status === 200) return { ...body.data, replayed: answered['idempotent-replayed'] === 'true' }
      last = body.error
      if (status < 409) throw new Error(`refused: ${status} ${JSON.stringify(body)}`)
    } catch (err) {
      if (err instanceof Error && err.message.startsWith('refused')) throw err
      last = err
    }
    await sleep(100)
  }
  throw new Error(`no answer for ${text}`, { cause: last })
}

/** Two hundred sends of twenty conversations; answers what waits until each has ended, and judges them. */
export async function sendMany(own: Own): Promise<(killsOfMessaging: number) => Promise<void>> {
  const { client, phones } = await openWindows(own.stack.read(), conversations)
  const accepted: Accepted[] = []
  const sending = phones.map(async (to) => {
    for (let n = 0; n < sendsEach; n++) {
      const { id, conversation_id: conversation } = await sendSurely(client, to, `n${n}`)
      accepted.push({ id, conversation, n })
      await sleep(everyMs)
    }
  })
  return async (killsOfMessaging) => {
    await Promise.all(sending)
    expect(new Set(accepted.map(({ id }) => id)).size).toBe(conversations * sendsEach)
    // One that was in its call waits a minute for a status; what the subscriber has heard costs nobody a question.
    await until(() => expect(accepted.filter(({ id }) => !isTold(own, id))).toEqual([]), 150_000)
    const outcomes = await untilEnded(client, accepted)
    const ours = await upstreamOf(client, accepted)
    expect(ours.length).toBe(new Set(ours).size)
    expectOrder(accepted, ours)
    const failed = [...outcomes].filter(([, { status }]) => status === 'failed')
    expect(failed.every(([id, { error }]) => error?.code === 'delivery_unknown' && !ours.includes(id))).toBe(true)
    // Fewer than were in flight when messaging was killed: at most one of each conversation.
    expect(failed.length).toBeLessThan(killsOfMessaging * conversations)
    expect(ours.length + failed.length).toBe(accepted.length)
    expect(failed.filter(([id]) => !heard(own).has(`${id}:failed`))).toEqual([])
    expect(ours.filter((id) => !heard(own).has(`${id}:sent`))).toEqual([])
    await untilReadIsTold(own, ours)
  }
}

const heard = ({ receiver }: Own) => new Set(receiver.deliveries.map(({ headers }) => headers['x-svc-event-id']))

const isTold = (own: Own, id: string) => [`${id}:sent`, `${id}:failed`].some((event) => heard(own).has(event))

/** What the lists say of them. A gateway or a service that is just gone answers the next time. */
const untilEnded = (client: Client, accepted: Accepted[]) =>
  until(async () => {
    const listed = await listMessages(client)
    const ended = accepted.flatMap(({ id }) => {
      const message = listed.get(id)
      return message && ['read', 'failed'].includes(message.status) ? [[id, message] as const] : []
    })
    expect(ended.length).toBe(accepted.length)
    return new Map(ended)
  }, 60_000)

async function listMessages({ api, phone }: Client) {
  const messages = new Map<string, { status: string; error?: { code: string } }>()
  for (let cursor: string | null = ''; cursor !== null;) {
    const page: string = cursor && `&cursor=${cursor}`
    const { status, body } = await api('GET', `/${phone}/messages?direction=outbound&limit=100${page}`)
    expect(status).toBe(200)
    for (const message of body.data) messages.set(message.id, message)
    cursor = body.next_cursor
  }
  return messages
}

/** Which of them the platform took, in its order. */
async function upstreamOf(client: Client, accepted: Accepted[]) {
  const ids = new Set(accepted.map(({ id }) => id))
  const sent = (await client.sent()).map(({ body }) => body.biz_opaque_callback_data as string)
  return sent.filter((id) => ids.has(id))
}

function expectOrder(accepted: Accepted[], upstream: string[]) {
  const places = new Map(accepted.map((message) => [message.id, message]))
  const went = upstream.flatMap((id) => places.get(id) ?? [])
  for (const order of Map.groupBy(went, ({ conversation }) => conversation).values()) {
    expect(order.map(({ n }) => n)).toEqual(order.map(({ n }) => n).toSorted((a, b) => a - b))
  }
}

/** A status is told by the platform's id of its message. */
const untilReadIsTold = ({ receiver }: Own, ours: string[]) =>
  until(() => {
    const sent = receiver.of('message.sent').map(({ body }) => body.data.message)
    const wamids = sent.filter(({ id }) => ours.includes(id)).map(({ provider_id: wamid }) => wamid as string)
    const read = new Set(receiver.of('message.status').map(({ headers }) => headers['x-svc-event-id']))
    expect(wamids.filter((wamid) => !read.has(`${wamid}:read`))).toEqual([])
  }, 60_000)
