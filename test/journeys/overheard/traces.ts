import { expect } from 'vitest'
import type { SpanSeen } from '../../collector.ts'
import { until } from '../client.ts'
import { type Watched, sentEvents } from './watch.ts'

/** One trace goes from the request through questions, outbox and events to the platform and the subscriber. */
export async function followTrace(watched: Watched) {
  const { client, collector } = watched
  const words = `trace me ${Date.now()}`
  const { body } = await client.sendText(words)
  await until(() => Promise.resolve(expect(sentEvents(watched, words)).toHaveLength(1)))
  const traceparent = sentEvents(watched, words)[0]?.headers['traceparent'] ?? ''
  const [, traceId = '', deliverId = ''] = traceparent.split('-')
  // Each process sends its spans by itself, so the last of them need not come last.
  const ways = () => {
    const spans = collector.of(traceId)
    const byId = new Map(spans.map((span) => [span.spanId, span]))
    const call = spans.find(
      ({ name, attributes }) => name === 'send to the platform' && attributes['message'] === body.data.id,
    )
    return { deliver: wayTo(byId, deliverId), call: wayTo(byId, call?.spanId ?? '').slice(-2) }
  }
  await until(() =>
    Promise.resolve(
      expect(ways()).toEqual({
        deliver: [
          'gateway POST /v1/:phone_number_id/messages',
          'gateway rpc.messaging.send-message',
          'messaging rpc.messaging.send-message',
          'messaging event.messaging.message-sent',
          'webhooks event.messaging.message-sent',
          'webhooks deliver',
        ],
        call: ['messaging rpc.messaging.send-message', 'messaging send to the platform'],
      }),
    ),
  )
}

/** The spans from the first of a trace to this one. */
function wayTo(spans: Map<string, SpanSeen>, id: string): string[] {
  const span = spans.get(id)
  return span ? [...wayTo(spans, span.parentSpanId), `${span.service} ${span.name}`] : []
}

/** A client's own trace goes on, and one that it does not sample is left alone. */
export async function goOnWithTrace(watched: Watched) {
  const { client, collector } = watched
  const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
  const headers = (flags: string) => ({ traceparent: `00-${traceId}-00f067aa0ba902b7-${flags}` })
  await client.sendText('not sampled', { headers: headers('00') })
  await client.sendText('sampled', { headers: headers('01') })
  await until(() => Promise.resolve(expect(sentEvents(watched, 'sampled')).toHaveLength(2)))
  await until(() => Promise.resolve(expect(collector.of(traceId).map(({ name }) => name)).toContain('deliver')))
  expect(sentEvents(watched, '"sampled"')[0]?.headers['traceparent']).toContain(traceId)
  expect(sentEvents(watched, 'not sampled')[0]?.headers['traceparent']).toBeUndefined()
  const first = () => collector.of(traceId).filter(({ parentSpanId }) => parentSpanId === '00f067aa0ba902b7')
  await until(() =>
    Promise.resolve(expect(first().map(({ name }) => name)).toEqual(['POST /v1/:phone_number_id/messages'])),
  )
}
