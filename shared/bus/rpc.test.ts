import { once as onceEmitted } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { freezeFor } from '@app/test/freeze.ts'
import { testService, type TestService } from '@app/test/service.ts'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'
import { ask, call, systemCaller } from './ask.ts'
import { writeCall } from './call-header.ts'
import { type Page, rpc } from '../api/contract.ts'
import { once } from '../idempotency/idempotency.ts'
import { inWorkSubject, isInWorkNote } from './lost-questions.ts'
import { Problem } from '../api/problem.ts'
import { mostHeld } from '../work/holdings.ts'
import { consumers, provision } from '../events/provision.ts'
import type { Relay } from '../events/relay.ts'
import { serve, type Serving } from './rpc.ts'
import { streamName } from '../events/stream.ts'

const body = z.object({ text: z.string().max(10), count: z.int().default(1) })
const echo = rpc({ subject: 'rpc.messaging.echo', summary: 'Echo', body, answer: z.object({ text: z.string() }) })
const fail = rpc({
  subject: 'rpc.messaging.fail',
  summary: 'Fail',
  body: z.object({ how: z.string() }),
  answer: z.object({}),
})
const nobody = rpc({ subject: 'rpc.messaging.nobody', summary: 'Nobody serves it', answer: z.object({}) })
const keep = rpc({
  subject: 'rpc.messaging.keep',
  summary: 'Keep',
  body: z.object({ text: z.string() }),
  answer: z.object({ text: z.string() }),
})
const all = z.object({ status: z.string().optional(), customer_id: z.string().optional() })
const page = z.object({ limit: z.string().optional(), cursor: z.string().optional() })
const list = { summary: 'A list', answer: z.object({ text: z.string() }), list: true } as const
const listAll = rpc({ subject: 'rpc.messaging.list-all', query: all, ...list })
const listPage = rpc({ subject: 'rpc.messaging.list-page', query: page, ...list })
const http = { method: 'GET', path: '/large', tag: 'Test' } as const
const listLarge = rpc({ subject: 'rpc.messaging.list-large', http, ...list })
const take = rpc({
  subject: 'rpc.messaging.take',
  summary: 'Take',
  body: z.custom<Uint8Array>(),
  answer: z.object({}),
})
const contracts = { echo, fail, keep, take, listAll, listPage, listLarge }
const sealKeys = { current: 'k', byId: new Map() }
const header = { organization: '', key: '', request: 'req_1', remainingMs: 1_000, trace: '', params: {}, query: {} }
/** The words that were asked to be echoed. */
const heard: string[] = []

let app: TestService
let serving: Serving
let release: () => void = () => {}

const tooMany = () =>
  Promise.resolve({ data: [{ text: '0'.repeat(9 * 1024 * 1024) }], has_more: false, next_cursor: null })

/** How many large lists were being made as each of them began. */
const making: number[] = []
let beingMade = 0

async function oneLarge() {
  making.push(++beingMade)
  await new Promise((resolve) => setTimeout(resolve, 5))
  beingMade--
  return { data: [{ text: '0'.repeat(2_000_000) }], has_more: false, next_cursor: null }
}

/** Of the items of a list that has pages; a cursor is the place of the first. */
let sizes: number[] = []

function onePage({ limit = '25', cursor = '0' }: z.output<typeof page>) {
  const end = Number(cursor) + Number(limit)
  const more = end < sizes.length
  const data = sizes.slice(Number(cursor), end).map((size) => ({ text: '0'.repeat(size) }))
  return Promise.resolve({ data, has_more: more, next_cursor: more ? String(end) : null })
}

beforeAll(async () => {
  app = await testService('messaging')
  const relay: Relay = { wake() {}, redrive: () => Promise.resolve(0), stop: () => Promise.resolve() }
  serving = await serve({ ...app, sealKeys, relay }, contracts, {
    keep: (served, { body: { text } }, caller) =>
      once(served, keep, caller, async () => {
        heard.push(text)
        return { text }
      }),
    echo: async (_app, { body: { text, count } }) => {
      heard.push(text)
      return { text: text.repeat(count), secret: 'column' }
    },
    take: () => Promise.resolve({}),
    listAll: tooMany,
    listPage: (_app, { query }) => onePage(query),
    listLarge: oneLarge,
    fail: async ({ sql }, { body: { how } }) => {
      if (how === 'problem') throw new Problem('name_taken', { param: 'name', message: 'Taken.' })
      if (how === 'absent') throw new Problem('resource_not_found')
      if (how === 'slow') await new Promise<void>((resolve) => (release = resolve))
      if (how === 'cancelled') await sql`select pg_cancel_backend(pg_backend_pid()), pg_sleep(1)`
      if (how === 'bug') throw new Error('the password is hunter2')
      return {}
    },
  })
})
test('nobody can tell from one question where the answer to another is awaited', async () => {
  const replies: string[] = []
  const heard = app.nc.subscribe('rpc.messaging.listened', {
    callback: (_err, { reply }) => void replies.push(reply ?? ''),
  })
  const listened = rpc({ subject: 'rpc.messaging.listened', summary: 'Listened', answer: z.object({}) })
  const asked = [1, 2].map(() => call(app, listened, {}, systemCaller(), { timeoutMs: 300 }).catch(() => 'no answer'))
  await expect.poll(() => replies).toHaveLength(2)
  const [one = '', other = ''] = replies.map((reply) => reply.split('.').at(-1))
  expect([one.length, other.length]).toEqual([16, 16])
  expect(one.slice(0, 4)).not.toBe(other.slice(0, 4))
  app.nc.publish(replies[0]?.replace(one, `${one.slice(0, -1)}!`) ?? '', '{"data":{}}')
  expect(await Promise.all(asked)).toEqual(['no answer', 'no answer'])
  heard.unsubscribe()
})

test('what is not there is told in the log to whom it belongs, and of strangers, who may ask as fast as they can, when debugging', async () => {
  const lines: string[] = []
  const { level } = app.log
  app.log.level = 'debug'
  onTestFinished(() => void (app.log.level = level))
  for (const name of ['debug', 'info'] as const) {
    const spy = vi.spyOn(app.log, name).mockImplementation((line: unknown) => {
      if (line && typeof line === 'object' && 'problem' in line) lines.push(name)
    })
    onTestFinished(() => spy.mockRestore())
  }
  const askFor = (organization: string, how: string) =>
    expect(call(app, fail, { body: { how } }, systemCaller(organization))).rejects.toThrow(Problem)
  await askFor('', 'absent')
  await askFor('org_1', 'absent')
  await askFor('', 'problem')
  expect(lines).toEqual(['debug', 'info', 'info'])
})

test('what came while the process was away, and nobody waits for any more, is not done', async () => {
  const { natsUrl } = app
  const ofOther = (text: string, remainingMs: number) => ({
    subject: echo.subject,
    body: JSON.stringify({ text }),
    call: writeCall({ ...header, remainingMs }).get('Svc-Call'),
  })
  const asker = new Worker(
    `const { parentPort, workerData } = require('node:worker_threads')
    const { connect, headers } = require('node:module').createRequire(workerData.home)('nats')
    connect({ servers: workerData.natsUrl }).then((nc) => {
      parentPort.postMessage('connected')
      setTimeout(() => {
        for (const { subject, body, call } of workerData.questions) {
          const carrier = headers()
          carrier.set('Svc-Call', call)
          nc.publish(subject, body, { headers: carrier, reply: '_INBOX_messaging.nobody' })
        }
        nc.drain()
      }, 300)
    })`,
    {
      eval: true,
      workerData: {
        natsUrl,
        home: import.meta.filename,
        questions: [ofOther('stale', 2_000), ofOther('in time', 60_000)],
      },
    },
  )
  await onceEmitted(asker, 'message')
  heard.length = 0
  freezeFor(3_000)
  await expect.poll(() => heard).toContain('in time')
  await call(app, echo, { body: { text: 'after' } }, systemCaller(), { timeoutMs: 2_000 })
  expect(heard).toEqual(['in time', 'after'])
})

test('whoever asks over another connection as soon as something is served finds it', async () => {
  const asker = { ...app, ...app.eventBus }
  for (let n = 0; n < 60; n++) {
    const fresh = rpc({ subject: `rpc.messaging.fresh-${n}`, summary: 'Fresh', answer: z.object({}) })
    const serving = await serve(app, { fresh }, { fresh: () => Promise.resolve({}) })
    expect(await call(asker, fresh, {}, systemCaller())).toEqual({})
    await serving.stop()
  }
})

test('answers to inboxes only: not where the answer would be an event of its own', async () => {
  const { nc } = app
  const told: string[] = []
  const listening = nc.subscribe('event.>', { callback: (_err, { subject }) => void told.push(subject) })
  heard.length = 0
  for (const reply of ['event.messaging.told', undefined])
    nc.publish(echo.subject, JSON.stringify({ text: 'led' }), { headers: writeCall(header), ...(reply && { reply }) })
  nc.publish(echo.subject, '{', { reply: 'event.messaging.refused' })
  nc.publish(inWorkSubject('messaging'), '[]', { reply: 'event.messaging.in-work' })
  await call(app, echo, { body: { text: 'asked' } }, systemCaller())
  await nc.flush()
  expect(heard).toEqual(['asked'])
  expect(told).toEqual([])
  listening.unsubscribe()
})

test('a stream that records questions, too, answers none of them, nor for an instance that is not there', async () => {
  const { streams } = await app.nc.jetstreamManager()
  await streams.add({ name: 'QUESTIONS', subjects: ['rpc.>'] })
  onTestFinished(async () => void (await streams.delete('QUESTIONS')))
  expect(await call(app, echo, { body: { text: 'asked' } }, systemCaller())).toEqual({ text: 'asked' })
  const asked = call(app, nobody, {}, systemCaller(), { timeoutMs: 200 })
  await expect(asked).rejects.toMatchObject({ failure: 'service_unavailable' })
  await streams.update('QUESTIONS', { max_msg_size: 1 })
  expect(await call(app, echo, { body: { text: 'asked' } }, systemCaller())).toEqual({ text: 'asked' })
  expect((await streams.info('QUESTIONS')).state.messages).toBe(2)
})

test('takes no event for a question, though it was led to its subject', async () => {
  const { nc } = app
  await provision(nc)
  const carrier = writeCall({ ...header, organization: 'org_1' })
  const { seq } = await nc
    .jetstream()
    .publish('event.messaging.led', JSON.stringify({ text: 'led' }), { headers: carrier })
  heard.length = 0
  const { name } = consumers.webhooksFanOut
  nc.publish(`$JS.API.CONSUMER.MSG.NEXT.${streamName}.${name}`, '{"batch":1}', { reply: echo.subject })
  const jsm = await nc.jetstreamManager()
  const delivered = async () => (await jsm.consumers.info(streamName, name)).delivered.stream_seq
  await expect.poll(delivered).toBe(seq)
  await call(app, echo, { body: { text: 'asked' } }, systemCaller())
  expect(heard).toEqual(['asked'])
})

afterAll(async () => {
  await serving.stop()
  await app.close()
})

const failing = (how: string, options = {}) => call(app, fail, { body: { how } }, systemCaller(), options)

test('a question is parsed by its contract, and its answer stripped', async () => {
  expect(await call(app, echo, { body: { text: 'a', count: 3 } }, systemCaller())).toEqual({ text: 'aaa' })
})

test('a fault names its field', async () => {
  const asked = call(app, echo, { body: { text: 'x'.repeat(11) } }, systemCaller())
  await expect(asked).rejects.toMatchObject({ failure: 'invalid_field_value', param: 'text' })
})

test('a problem arrives as the same problem', async () => {
  await expect(failing('problem')).rejects.toMatchObject({ failure: 'name_taken', param: 'name', message: 'Taken.' })
})

test('an answer that is larger than the bus takes is a 500 at once, and those beside it arrive', async () => {
  const [large, small] = await Promise.allSettled([
    call(app, echo, { body: { text: '0123456789', count: 1_000_000 } }, systemCaller(), { timeoutMs: 3_000 }),
    call(app, echo, { body: { text: 'small' } }, systemCaller(), { timeoutMs: 3_000 }),
  ])
  expect(large).toMatchObject({ status: 'rejected', reason: { failure: 'internal_error' } })
  expect(small).toEqual({ status: 'fulfilled', value: { text: 'small' } })
})

test('a list without pages that is larger than the bus takes says how it is made shorter', async () => {
  const message = 'The answer is too large: ask for fewer items with `status` or `customer_id`.'
  await expect(call(app, listAll, {}, systemCaller())).rejects.toMatchObject({ failure: 'internal_error', message })
})

test.each([
  ['all alike', Array<number>(60).fill(200_000), [41, 19]],
  ['the large ones first', [...Array<number>(40).fill(260_000), ...Array<number>(60).fill(10)], [32, 68]],
  ['so large that two do not fit', Array<number>(2).fill(4_500_000), [1, 1]],
])(
  'a page that is larger than the bus takes has fewer items, and its cursor leads to the others: %s',
  async (_, all, lengths) => {
    sizes = all
    const pages: number[][] = []
    let cursor: string | null = '0'
    while (cursor !== null) {
      const query: z.output<typeof page> = { limit: '100', cursor }
      const got: Page<{ text: string }> = await call(app, listPage, { query }, systemCaller())
      pages.push(got.data.map(({ text }) => text.length))
      cursor = got.next_cursor
    }
    expect(pages.flat()).toEqual(all)
    expect(pages.map(({ length }) => length)).toEqual(lengths)
  },
)

test('a page of one item that is larger than the bus takes is a 500', async () => {
  sizes = [9_000_000]
  await expect(call(app, listPage, {}, systemCaller())).rejects.toMatchObject({ failure: 'internal_error' })
})

test('a database that cancels is a 503; anything unexpected is a 500 that tells nothing', async () => {
  await expect(failing('cancelled')).rejects.toMatchObject({ failure: 'service_unavailable', status: 503 })
  await expect(failing('bug')).rejects.toMatchObject({
    failure: 'internal_error',
    message: expect.not.stringContaining('hunter'),
  })
})

test('what a guard refused is not done, and the retry of what was done before has its answer', async () => {
  const asked = (key: string, refusal?: 'feature_not_entitled') =>
    ask(app, keep, { ...header, organization: 'org_1', idempotency: { key, target: 'POST /keep' }, refusal }, body)
  const body = Buffer.from('{"text":"kept"}')
  heard.length = 0
  const first = await asked('a')
  const again = await asked('a', 'feature_not_entitled')
  expect([again.replayed, Buffer.from(again.body).toString()]).toEqual([true, Buffer.from(first.body).toString()])
  expect(await asked('b', 'feature_not_entitled')).toMatchObject({ status: 403, failure: 'feature_not_entitled' })
  const refused = await ask(app, keep, { ...header, refusal: 'feature_not_entitled' }, body)
  expect(refused).toMatchObject({ status: 403, failure: 'feature_not_entitled' })
  expect(heard).toEqual(['kept'])
})

test('under a key that was used, a question that does not fit is another request, like one that does', async () => {
  const asked = (text: string, key: string) =>
    ask(app, keep, { ...header, organization: 'org_2', idempotency: { key, target: 'POST /keep' } }, Buffer.from(text))
  await asked('{"text":"kept"}', 'a')
  for (const text of ['{"text":1}', '{}', '{"text', ''])
    expect(await asked(text, 'a')).toMatchObject({ status: 422, failure: 'idempotency_key_reuse' })
  expect(await asked('{"text":1}', 'b')).toMatchObject({ status: 400, failure: 'invalid_field_value' })
  expect(await asked('{"text', 'b')).toMatchObject({ status: 400, failure: 'invalid_field_value' })
  expect((await asked('{"text":"right"}', 'b')).replayed).toBe(false)
})

test('nobody who serves is a 503 at once, and an answer that does not come one when the time is up', async () => {
  const startedAt = performance.now()
  await expect(call(app, nobody, {}, systemCaller())).rejects.toMatchObject({ failure: 'service_unavailable' })
  expect(performance.now() - startedAt).toBeLessThan(2_000)
  await expect(failing('slow', { timeoutMs: 200 })).rejects.toMatchObject({ failure: 'service_unavailable' })
  release()
})

test('a call waits no longer than its caller', async () => {
  const startedAt = performance.now()
  const caller = { ...systemCaller(), deadline: startedAt + 200 }
  const asked = call(app, fail, { body: { how: 'slow' } }, caller, { timeoutMs: 20_000 })
  await expect(asked).rejects.toMatchObject({ failure: 'service_unavailable' })
  expect(performance.now() - startedAt).toBeLessThan(10_000)
  release()
})

test('a question that is in work for long is not taken for lost', async () => {
  const asked = failing('slow')
  setTimeout(() => release(), 2_700)
  expect(await asked).toEqual({})
})

test('a question stays in work until its first try is over, also when a repeat of it was answered', async () => {
  const reply = '_INBOX_messaging.repeated'
  const notes: boolean[] = []
  const answers = app.nc.subscribe(reply, { callback: (_err, message) => void notes.push(isInWorkNote(message)) })
  const ask = (how: string) =>
    app.nc.publish(fail.subject, JSON.stringify({ how }), { headers: writeCall(header), reply })
  ask('slow')
  ask('problem')
  await expect.poll(() => notes).toEqual([false])
  await app.nc.request(inWorkSubject('messaging'), JSON.stringify([reply]))
  expect(notes).toEqual([false, true])
  release()
  await expect.poll(() => notes).toEqual([false, true, false])
  await app.nc.request(inWorkSubject('messaging'), JSON.stringify([reply]))
  expect(notes).toHaveLength(3)
  answers.unsubscribe()
})

test.each(['{', '[1', '\u{1F600}'.slice(0, 1), `{"text":"${'['.repeat(5)}"`, `${'['.repeat(40_000)}`])(
  '%j is refused, not thrown at',
  async (text) => {
    const call = { organization: '', key: '', request: 'req', remainingMs: 2_000, trace: '', params: {}, query: {} }
    const reply = await ask(app, echo, call, Buffer.from(text))
    expect(reply).toMatchObject({ status: 400, failure: 'invalid_field_value' })
  },
)

test('__proto__ in a body pollutes nothing', async () => {
  const call = { organization: '', key: '', request: 'req', remainingMs: 2_000, trace: '', params: {}, query: {} }
  const reply = await ask(app, echo, call, Buffer.from('{"text":"a","__proto__":{"count":3}}'))
  expect(JSON.parse(Buffer.from(reply.body).toString())).toEqual({ data: { text: 'a' }, request_id: 'req' })
})

test('bodies of which the answers are given take no room from those that come', async () => {
  const ofOne = { ...header, organization: 'org_1', remainingMs: 20_000 }
  const large = Buffer.alloc(7 * 1024 * 1024)
  // More than a service holds at a time for an organization: half of what it bears.
  for (let sent = 0; sent <= mostHeld.bytes / 2; sent += large.length)
    expect(await ask(app, take, ofOne, large)).toMatchObject({ failure: null })
})

test('an organization that has too much in work is told so at once, and what others ask is done', async () => {
  const hold = rpc({ subject: 'rpc.messaging.hold', summary: 'Hold', answer: z.object({}) })
  const goOn = Promise.withResolvers<object>()
  let begun = 0
  const held = await serve(
    { ...app, name: 'platform' },
    { hold },
    { hold: () => (++begun > 2_048 ? Promise.resolve({}) : goOn.promise) },
  )
  const ofOne = { ...header, organization: 'org_1', remainingMs: 20_000 }
  const inWork = Array.from({ length: 2_048 }, () => ask(app, hold, ofOne, Buffer.alloc(0)))
  await expect.poll(() => begun).toBe(2_048)
  expect(await ask(app, hold, ofOne, Buffer.alloc(0))).toMatchObject({ failure: 'service_unavailable' })
  expect(await call(app, hold, {}, systemCaller('org_2'))).toEqual({})
  goOn.resolve({})
  expect((await Promise.all(inWork)).filter(({ failure }) => failure !== null)).toEqual([])
  const metrics = await app.probes.metrics.metrics()
  expect(metrics).toMatch(/svc_rpc_served_seconds_count\{[^}]*rpc\.messaging\.hold[^}]*outcome="overloaded"[^}]*\} 1\n/)
  await held.stop()
})

test("an organization's large lists are made one at a time, once they are known to be large", async () => {
  const ask = (organization: string) => call(app, listLarge, {}, systemCaller(organization))
  const asked = Array.from({ length: 16 }, () => ask('org_1'))
  expect(await Promise.all(asked)).toHaveLength(16)
  expect(Math.max(...making)).toBeLessThanOrEqual(8)
  expect(making.slice(-7)).toEqual([1, 1, 1, 1, 1, 1, 1])
})

test('large bodies of one organization leave time to what others ask', async () => {
  const large = { text: '', more: Array.from({ length: 20_000 }, (_, n) => ({ [n]: [] })) }
  let ended = 0
  const asked = Array.from({ length: 20 }, () =>
    call(app, echo, { body: large as { text: string } }, systemCaller('org_1'), { timeoutMs: 20_000 }).then(
      () => ended++,
    ),
  )
  await expect.poll(() => ended, { interval: 1 }).toBeGreaterThan(0)
  for (let n = 0; n < 3; n++) await call(app, echo, { body: { text: 'small' } }, systemCaller('org_2'))
  expect(ended).toBeLessThan(15)
  await Promise.all(asked)
})

test('one that stops answers first what it has in work, and tells of it until then', async () => {
  const wait = rpc({ subject: 'rpc.messaging.wait', summary: 'Wait', answer: z.object({}) })
  const [begun, goOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const order: string[] = []
  const stopping = await serve(
    { ...app, name: 'platform' },
    { wait },
    {
      wait: async () => {
        begun.resolve()
        await goOn.promise
        order.push('done')
        return {}
      },
    },
  )
  const answer = call(app, wait, {}, systemCaller())
  await begun.promise
  const stopped = stopping.stop().then(() => order.push('stopped'))
  await sleep(300)
  // Or it would be taken for lost.
  await app.nc.request(inWorkSubject('platform'), '[]')
  goOn.resolve()
  expect(await answer).toEqual({})
  await stopped
  expect(order).toEqual(['done', 'stopped'])
})
