import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { request } from 'undici'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Collector, type SpanSeen, startCollector } from '../collector.ts'
import { clientOf, type Json, until } from './client.ts'
import { type Receiver, startReceiver } from './receiver.ts'
import { type StartedStack, startStack } from './start-stack.ts'

let collector: Collector
let receiver: Receiver
let stack: StartedStack
let client: ReturnType<typeof clientOf>
let secrets: string[]

/** Words that may stand in no log: what customers write, who they are, and what opens doors. */
const canary = 'canary-7f3a-body'
const secretWord = 'canary-in-a-path'
const stranger = '+15550107777'

beforeAll(async () => {
  collector = await startCollector()
  receiver = await startReceiver()
  stack = await startStack([], undefined, { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, LOG_LEVEL: 'debug' })
  client = clientOf(stack.read())
  const subscription = await client.api('POST', '/webhook_subscriptions', {
    body: { url: receiver.url, events: ['message.sent', 'message.received', 'message.status'] },
  })
  secrets = [subscription.body.data.initial_secret, stack.read().api_key]
})
afterAll(async () => {
  await stack?.remove()
  receiver.close()
  collector.close()
})

const sentEvents = (text: string) => receiver.of('message.sent').filter(({ raw }) => raw.includes(text))

test('one trace goes from the request through questions, outbox and events to the platform and the subscriber', async () => {
  const words = `trace me ${Date.now()}`
  const { body } = await client.sendText(words)
  await until(() => Promise.resolve(expect(sentEvents(words)).toHaveLength(1)))
  const traceparent = sentEvents(words)[0]?.headers['traceparent'] ?? ''
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
})

/** The spans from the first of a trace to this one. */
function wayTo(spans: Map<string, SpanSeen>, id: string): string[] {
  const span = spans.get(id)
  return span ? [...wayTo(spans, span.parentSpanId), `${span.service} ${span.name}`] : []
}

test("a client's own trace goes on, and one that it does not sample is left alone", async () => {
  const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
  const headers = (flags: string) => ({ traceparent: `00-${traceId}-00f067aa0ba902b7-${flags}` })
  await client.sendText('not sampled', { headers: headers('00') })
  await client.sendText('sampled', { headers: headers('01') })
  await until(() => Promise.resolve(expect(sentEvents('sampled')).toHaveLength(2)))
  await until(() => Promise.resolve(expect(collector.of(traceId).map(({ name }) => name)).toContain('deliver')))
  expect(sentEvents('"sampled"')[0]?.headers['traceparent']).toContain(traceId)
  expect(sentEvents('not sampled')[0]?.headers['traceparent']).toBeUndefined()
  const first = () => collector.of(traceId).filter(({ parentSpanId }) => parentSpanId === '00f067aa0ba902b7')
  await until(() =>
    Promise.resolve(expect(first().map(({ name }) => name)).toEqual(['POST /v1/:phone_number_id/messages'])),
  )
})

async function scrape() {
  const pages = Object.values(stack.read().services).flatMap((instances) =>
    instances.map(async ({ url }) => (await request(`${url}/metrics`)).body.text()),
  )
  return (await Promise.all(pages)).join('\n')
}

test('every metric of the dashboard and the rules is there, and tells what has happened', async () => {
  const page = await scrape()
  const there = new Set([...page.matchAll(/^# TYPE (\S+) /gm)].map(([, name]) => name))
  const root = join(import.meta.dirname, '../..')
  const used = ['dashboard.json', 'rules.yaml'].flatMap((file) => [
    ...readFileSync(join(root, 'deploy/monitoring', file), 'utf8').matchAll(/\b(?:svc|process|nodejs)_[a-z0-9_]+/g),
  ])
  const names = used.map(([name]) => name.replace(/_(bucket|count|sum)$/, ''))
  expect(names.filter((name) => !there.has(name))).toEqual([])

  const value = (line: string) =>
    Number(
      page
        .split('\n')
        .find((one) => one.startsWith(line))
        ?.split(' ')
        .at(-1),
    )
  const sends = [
    'svc_http_request_seconds_count{service="gateway",method="POST",route="/v1/:phone_number_id/messages",status="200"}',
    'svc_sends_accepted_total{type="text",service="messaging"}',
    'svc_sends_ended_total{outcome="sent",code="",service="messaging"}',
  ]
  // More where a test before was tried again.
  for (const line of sends) expect(value(line)).toBeGreaterThanOrEqual(3)
  expect(value('svc_webhook_subscriptions{status="paused",service="webhooks"}')).toBe(0)
  for (const service of ['messaging', 'directory', 'platform', 'webhooks']) {
    expect(value(`svc_ready{service="${service}"}`)).toBe(1)
    expect(value(`svc_outbox_oldest_seconds{service="${service}"}`)).toBeLessThan(60)
  }
})

test('no label holds an id, a number or an address', async () => {
  const labels = [...(await scrape()).matchAll(/"([^"]*)"/g)].map(([, text = '']) => text)
  expect(labels.length).toBeGreaterThan(100)
  expect(labels.filter((text) => /_[0-9A-HJKMNP-TV-Z]{26}|\d{7}|@|https?:/.test(text))).toEqual([])
})

test('the log has a line for each request, question, event, attempt and part of a callback, in the same words, and nothing private', async () => {
  const { phone, control, api, sendText } = client
  const { organization_id: organization, demo_contact: contact, phone_number_id: phoneNumberId } = stack.read()
  const { body } = await sendText(canary)
  await control('/control/inbound', {
    phone_number_id: phone,
    message: { from: contact.phone_number.slice(1), type: 'text', text: { body: `${canary} in` } },
  })
  await sendText(canary, { to: stranger })
  await api('GET', `/contacts/${encodeURIComponent(stranger)}`)
  await api('GET', `/contacts?search=${encodeURIComponent(stranger)}`)
  await api('POST', `/${phone}/messages`, { body: `{"to":"${stranger}","text":"${canary}` })
  await api('GET', '/me', { key: `${stack.read().api_key}x` })
  const { public_url: gateway = '' } = stack.read().services['gateway']?.[0] ?? {}
  for (const path of ['/setup/', '/media/', '/v1/no/']) {
    await (await request(`${gateway}${path}${secretWord}`)).body.dump()
  }
  receiver.respondWith((response) => response.writeHead(500).end(canary))
  await control('/control/faults', {
    match: { to: contact.phone_number },
    fault: { kind: 'error', code: 131026 },
    times: 1,
  })
  await sendText(`${canary} fails`)
  await until(() => Promise.resolve(expect(sentEvents(`${canary}"`).length).toBeGreaterThan(0)))
  await until(() => Promise.resolve(expect(receiver.of('message.received').length).toBeGreaterThan(0)))
  await until(async () => {
    const { data } = (await api('GET', `/${phone}/messages`)).body
    expect(
      data.filter(({ content, status }: Json) => content === `${canary} fails` && status === 'failed'),
    ).toHaveLength(1)
  })
  await until(() =>
    Promise.resolve(expect(receiver.of('message.status').some(({ raw }) => raw.includes('131026'))).toBe(true)),
  )
  await stack.stop()

  const text = globSync(join(stack.dataDir, 'logs/{gateway,messaging,directory,platform,webhooks}.log'))
    .map((file) => readFileSync(file, 'utf8'))
    .join('')
  const unsaid = [
    canary,
    secretWord,
    stranger.slice(1),
    contact.phone_number.slice(1),
    'trace me',
    receiver.url,
    ...secrets,
  ]
  expect(unsaid.filter((word) => text.includes(word))).toEqual([])

  const lines: Json[] = text
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line))
  const all = expect.any(Number)
  const word = expect.any(String)
  const id = expect.stringMatching(/^[0-9a-f]{32}$/)
  const having = (line: object) => expect(lines).toContainEqual(expect.objectContaining(line))
  having({
    msg: 'http',
    method: 'POST',
    route: '/v1/:phone_number_id/messages',
    status: 200,
    organization,
    request: word,
    trace: id,
    durationMs: all,
  })
  having({ msg: 'rpc', subject: 'rpc.messaging.send-message', organization, request: word, trace: id, durationMs: all })
  having({
    msg: 'event',
    consumer: 'webhooks-fan-out',
    organization,
    event: `${body.data.id}:sent`,
    trace: id,
    durationMs: all,
  })
  having({
    msg: 'attempt',
    name: 'messaging',
    organization,
    number: phoneNumberId,
    message: body.data.id,
    attempt: 1,
    outcome: 'accepted',
    trace: id,
    durationMs: all,
  })
  having({ msg: 'attempt', name: 'messaging', organization, outcome: 'refused', code: 131026 })
  having({
    msg: 'attempt',
    name: 'webhooks',
    organization,
    delivery: word,
    event: 'message.sent',
    outcome: 'succeeded',
    durationMs: all,
  })
  having({ msg: 'attempt', name: 'webhooks', organization, outcome: 'failed', status: 500 })
  having({ msg: 'callback item', organization, kind: 'message', outcome: 'handled', durationMs: all })
})
