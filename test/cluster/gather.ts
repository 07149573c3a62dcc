import type { History } from '../faults/history/history.ts'
import type { clientOf, Json } from '../journeys/client.ts'
import type { Receiver } from '../journeys/receiver.ts'

const told = ['sent', 'delivered', 'read']
const ended = ['read', 'failed']

type Client = ReturnType<typeof clientOf>

/** Everything in a list of messages. */
export async function listMessages({ api, phone }: Client, direction: 'inbound' | 'outbound'): Promise<Json[]> {
  const items: Json[] = []
  for (let cursor: string | null = ''; cursor !== null;) {
    const more: string = cursor && `&cursor=${encodeURIComponent(cursor)}`
    const { status, body } = await api('GET', `/${phone}/messages?direction=${direction}&limit=100${more}`)
    if (status !== 200) throw new Error(`The list of messages answered ${status}.`)
    items.push(...body.data)
    cursor = body.next_cursor
  }
  return items
}

/** Brings into the history what the platform took and what the lists say; whether every send has ended. */
export async function gather(client: Client, history: History, inboundPosted: string[]): Promise<boolean> {
  const { phone } = client
  const sent = await client.sent()
  history.upstream = sent.map(({ id, at, body }) => ({
    id,
    at: Date.parse(at),
    messageId: body.biz_opaque_callback_data,
    phone,
  }))
  const startedAt = Date.now()
  const [outbound, inbound] = [await listMessages(client, 'outbound'), await listMessages(client, 'inbound')]
  const endedAt = Date.now()
  history.endings = new Map(
    outbound.map(({ id, status, error }) => {
      const code: string | null = error?.code ?? null
      return [id, { messageId: id, startedAt, endedAt, status, code }]
    }),
  )
  const inboundListed = inbound.map(({ message_id: id }) => id)
  const rows = outbound.map(({ id, status }) => ({ id, status }))
  history.ledgers = [{ phone, outbound: rows, inboundPosted, inboundListed, media: [], unread: [] }]
  return history.accepted.every(({ id }) => ended.includes(history.endings.get(id)?.status ?? ''))
}

/** Which events must come of all that; whether they have come. */
export function gatherEvents(history: History, receiver: Receiver, received: string[]): boolean {
  const [subscription = { id: '', tenant: '' }] = history.subscriptions
  const accepted = new Map(history.accepted.map((send) => [send.id, send]))
  const place = { tenant: subscription.tenant, phone: history.ledgers[0]?.phone ?? '', notBefore: 1 }
  const went = history.upstream.filter(({ messageId }) => accepted.has(messageId))
  const wentOut = new Set(went.map(({ messageId }) => messageId))
  const status = (eventId: string) => ({ ...place, type: 'message.status', eventId })
  history.expected = [
    ...received.map((eventId) => ({ ...place, type: 'message.received', eventId })),
    ...went.map(({ messageId }) => ({ ...place, type: 'message.sent', eventId: `${messageId}:sent` })),
    ...went.flatMap(({ id }) => told.map((word) => status(`${id}:${word}`))),
    ...[...accepted.keys()].filter((id) => !wentOut.has(id)).map((id) => status(`${id}:failed`)),
  ]
  history.deliveries = receiver.deliveries.map(({ headers, raw }) => ({
    subscription: subscription.id,
    id: headers['x-svc-delivery-id'] ?? '',
    eventId: headers['x-svc-event-id'] ?? '',
    type: headers['x-svc-event'] ?? '',
    raw,
  }))
  const have = new Set(history.deliveries.map(({ type, eventId }) => `${type} ${eventId}`))
  return history.expected.every(({ type, eventId }) => have.has(`${type} ${eventId}`))
}
