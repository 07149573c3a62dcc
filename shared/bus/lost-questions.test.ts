import { setTimeout as sleep } from 'node:timers/promises'
import { freezeFor } from '@app/test/freeze.ts'
import { startTestNats, type TestNats } from '@app/test/nats.ts'
import { connect, headers, type Msg, type NatsConnection } from 'nats'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ask } from './ask.ts'
import { type Bus, connectBus } from './bus.ts'
import { readCall } from './call-header.ts'
import { tellInWork } from './lost-questions.ts'
import { createRequests } from './requests.ts'
import type { Problem } from '../api/problem.ts'

let nats: TestNats
let asker: Bus
let instance: NatsConnection
const inWork = new Set<string>()

beforeAll(async () => {
  nats = await startTestNats()
  asker = await connectBus('asker', nats.url, pino({ level: 'silent' }))
  instance = await connect({ servers: nats.url })
  tellInWork(instance, 'messaging', () => inWork)
})
afterAll(async () => {
  await Promise.all([asker.nc.close(), instance.close()])
  await nats.stop()
})

const idempotency = { key: 'a key', target: 'POST /v1' }
const header = { organization: '', key: '', request: 'req', remainingMs: 8_000, trace: '', params: {}, query: {} }
const inGeneral = { isConnected: () => asker.isConnected(), tracer: undefined }

/** Asks of an instance that does this with the first, the second … copy of the question; with no more of them nothing. */
function asking(subject: `rpc.${string}.${string}`, ...answers: Array<(message: Msg) => void>) {
  const copies: Msg[] = []
  instance.subscribe(subject, {
    callback: (_err, message) => {
      answers[copies.length]?.(message)
      copies.push(message)
    },
  })
  const startedAt = performance.now()
  const asked = async (more: object = {}) => {
    await instance.flush()
    const reply = await ask(
      { ...inGeneral, request: asker.request },
      { subject },
      { ...header, ...more },
      Buffer.from(''),
    )
    return Buffer.from(reply.body).toString()
  }
  return { asked, copies, tookMs: () => performance.now() - startedAt }
}

const lose = () => {}
const answer = (message: Msg) => void message.respond('answered')
const unavailable = { failure: 'service_unavailable' }

test.concurrent('a question that nobody has any more is asked once more, with what time is left', async () => {
  const { asked, copies, tookMs } = asking('rpc.messaging.lost', lose, answer)
  expect(await asked({ idempotency })).toBe('answered')
  expect(tookMs()).toBeLessThan(4_000)
  expect(copies).toHaveLength(2)
  expect(readCall(copies[1]?.headers).remainingMs).toBeLessThanOrEqual(6_500)
  expect(copies[1]?.reply).toBe(copies[0]?.reply)
})

test.concurrent('it is given up when it is lost again', async () => {
  const { asked, copies, tookMs } = asking('rpc.messaging.lost-twice', lose, lose, answer)
  await expect(asked({ idempotency })).rejects.toMatchObject(unavailable)
  expect(tookMs()).toBeLessThan(6_500)
  expect(copies).toHaveLength(2)
})

test.concurrent('one that might do a thing twice is not repeated: a frozen instance may still do it, and answer', async () => {
  const { asked, copies } = asking('rpc.messaging.unkeyed', (message) => void sleep(5_500).then(() => answer(message)))
  expect(await asked()).toBe('answered')
  expect(copies).toHaveLength(1)
})

test.concurrent('one that is in work is waited for', async () => {
  const { asked, copies } = asking('rpc.messaging.slow', (message) => {
    inWork.add(message.reply ?? '')
    void sleep(4_500).then(() => answer(message))
  })
  expect(await asked({ idempotency })).toBe('answered')
  expect(copies).toHaveLength(1)
})

test.concurrent('where no instance can tell, the question waits its time', async () => {
  const { asked, copies } = asking('rpc.directory.untold', (message) => void sleep(4_000).then(() => answer(message)))
  expect(await asked({ idempotency })).toBe('answered')
  expect(copies).toHaveLength(1)
})

test.concurrent('an event that was led to where askers ask is none of their lists', async () => {
  instance.publish('rpc.messaging.in-work', '{"not":"a list"}', { reply: '_INBOX_asker.any' })
  const { asked } = asking('rpc.messaging.after-that', lose, answer)
  expect(await asked({ idempotency })).toBe('answered')
})

test('when the connection is lost, one that may be repeated is asked over the next, and the others fail at once', async () => {
  const [keyed, unkeyed] = [
    asking('rpc.messaging.cut', lose, answer),
    asking('rpc.messaging.cut-unkeyed', lose, answer),
  ]
  const answers = [keyed.asked({ idempotency }), unkeyed.asked().then(String, ({ failure }: Problem) => failure)]
  await expect.poll(() => keyed.copies.length + unkeyed.copies.length).toBe(2)
  await asker.nc.reconnect()
  expect(await Promise.all(answers)).toEqual(['answered', unavailable.failure])
  expect(keyed.tookMs()).toBeLessThan(1_900)
  expect([keyed.copies.length, unkeyed.copies.length]).toEqual([2, 1])
})

test('what a repeat is told while the first try is in progress is not its answer: the first one is', async () => {
  const inProgress = (message: Msg) => {
    const carrier = headers()
    carrier.set('Nats-Service-Error', 'idempotency_in_progress')
    message.respond('in progress', { headers: carrier })
  }
  const late = (message: Msg) => void sleep(1_200).then(() => answer(message))
  const [slow, lost] = [
    asking('rpc.messaging.in-progress', late, inProgress),
    asking('rpc.messaging.in-progress-for-good', lose, inProgress),
  ]
  const answers = [slow.asked({ idempotency }), lost.asked({ idempotency })]
  await expect.poll(() => slow.copies.length + lost.copies.length).toBe(2)
  await asker.nc.reconnect()
  expect(await Promise.all(answers)).toEqual(['answered', 'in progress'])
  expect(lost.tookMs()).toBeLessThan(5_000)
})

test('a question that was given up before it left is not sent', async () => {
  const { copies } = asking('rpc.messaging.given-up')
  await instance.flush()
  const { request, cut } = createRequests(asker.nc, '_INBOX_given_up')
  const asked = request('rpc.messaging.given-up', Buffer.from(''), headers(), 1_000)
  cut()
  await expect(asked).rejects.toMatchObject({ code: 'DISCONNECT' })
  await sleep(1)
  await asker.nc.flush()
  await instance.flush()
  expect(copies).toEqual([])
})

test('while the connection is away nothing is asked, and what had not left yet is asked once, over the next', async () => {
  const { copies } = asking('rpc.messaging.away', answer)
  await instance.flush()
  const { request, cut, resume } = createRequests(asker.nc, '_INBOX_away')
  const ask = () => request('rpc.messaging.away', Buffer.from(''), headers(), 1_000, () => headers())
  const before = ask()
  cut()
  await expect(ask()).rejects.toMatchObject({ code: 'DISCONNECT' })
  await sleep(1)
  resume()
  expect((await before).string()).toBe('answered')
  await instance.flush()
  expect(copies).toHaveLength(1)
})

test('one that was asked again already fails at once when that connection is lost, too', async () => {
  const { request, cut, resume } = createRequests(asker.nc, '_INBOX_again')
  const asked = request('rpc.messaging.again', Buffer.from(''), headers(), 1_000, () => headers())
  cut()
  resume()
  cut()
  await expect(asked).rejects.toMatchObject({ code: 'DISCONNECT' })
})

test('an answer that came while this process was frozen counts, although the time for it is over', async () => {
  const subject = 'rpc.messaging.while-frozen'
  asking(subject, (message) => {
    answer(message)
    // It has left.
    setImmediate(() => freezeFor(1_500))
  })
  await instance.flush()
  const { request } = createRequests(asker.nc, '_INBOX_frozen')
  expect((await request(subject, Buffer.from(''), headers(), 300)).string()).toBe('answered')
})
