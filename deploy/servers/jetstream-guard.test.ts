import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test, type TestContext, vi } from 'vitest'
import type { Supervised } from '../processes/supervise.ts'
import { keepJetStream } from './jetstream-guard.ts'

const lookEveryMs = 10
/** An answer that is given comes in time, on a busy machine too. */
const answerWithinMs = 250
/** One more than those after which a server is started again. */
const someLooks = 4

/** `unsteady` is well at every other look. */
type Answer = 'ok' | 'unwell' | 'unsteady' | 'silent'

interface Circumstances extends Partial<Pick<Supervised, 'isStopped' | 'stop'>> {
  leastFreeBytes?: number
  storeFolder?: string
}

/** What answers as a nats-server's monitoring does, under a guard. */
async function guarded(
  { onTestFinished }: TestContext,
  { leastFreeBytes = 0, storeFolder = tmpdir(), ...more }: Circumstances = {},
) {
  const answers: Record<string, Answer> = { '/healthz': 'ok', '/jsz': 'ok' }
  let looks = 0
  const monitor = createServer(({ url = '' }, response) => {
    if (url === '/healthz') looks++
    const answer = answers[url]
    const isWell = answer === 'ok' || (answer === 'unsteady' && looks % 2 === 0)
    if (answer !== 'silent') response.writeHead(isWell ? 200 : 503).end()
  })
  await new Promise<void>((resolve) => monitor.listen(0, '127.0.0.1', resolve))
  const said: string[] = []
  let pid = 1
  const server: Supervised = {
    name: 'nats',
    logFile: '',
    pid: () => pid,
    deaths: () => 0,
    refusesSettings: () => false,
    lastWords: () => '',
    isStopped: () => false,
    stop: async () => {},
    start: () => void (pid += 1),
    ...more,
  }
  const { stop } = keepJetStream({
    server,
    monitorUrl: `http://127.0.0.1:${(monitor.address() as AddressInfo).port}`,
    storeFolder,
    say: (sentence) => said.push(sentence),
    lookEveryMs,
    answerWithinMs,
    leastFreeBytes,
  })
  onTestFinished(async () => {
    await stop()
    monitor.close().closeAllConnections()
  })
  const aWhile = () => {
    // The one under way may have heard what was answered before.
    const until = looks + 1 + someLooks
    return vi.waitUntil(() => looks > until, 20_000)
  }
  return { answers, said, aWhile, stop, pid: () => pid }
}

test.concurrent.for([
  ['does not answer about its streams', '/jsz', 'silent'],
  ['says that it is not well', '/healthz', 'unwell'],
] as const)('a server that was well and %s is started again, once', async ([, path, answer], context) => {
  const { answers, said, aWhile } = await guarded(context)
  await aWhile()
  expect(said).toEqual([])
  answers[path] = answer
  await vi.waitUntil(() => said.length === 1, 20_000)
  // The new one reads its streams, and may take its time.
  await aWhile()
  expect(said).toHaveLength(1)
})

test.concurrent('one that is well again at the next look is left alone, however often', async (context) => {
  const { answers, said, aWhile } = await guarded(context)
  await aWhile()
  answers['/healthz'] = 'unsteady'
  await aWhile()
  await aWhile()
  expect(said).toEqual([])
})

test.concurrent('one that answers nothing is frozen or gone, and left alone', async (context) => {
  const { answers, said, aWhile } = await guarded(context)
  await aWhile()
  Object.assign(answers, { '/healthz': 'silent', '/jsz': 'silent' })
  await aWhile()
  expect(said).toEqual([])
})

test.concurrent('it is not started again before its disk has room', async (context) => {
  const { answers, said, aWhile } = await guarded(context, { leastFreeBytes: Number.MAX_SAFE_INTEGER })
  await aWhile()
  answers['/jsz'] = 'silent'
  await aWhile()
  expect(said).toEqual([])
})

test.concurrent('one whose folder is gone, or on a disk that fails, is left alone, and the stack goes on', async (context) => {
  const { answers, said, aWhile } = await guarded(context, {
    leastFreeBytes: 1,
    storeFolder: join(tmpdir(), 'that-is-not-there'),
  })
  await aWhile()
  answers['/healthz'] = 'unwell'
  await aWhile()
  expect(said).toEqual([])
})

test.concurrent('one that somebody has stopped stays so', async (context) => {
  const { answers, said, aWhile } = await guarded(context, { isStopped: () => true })
  await aWhile()
  answers['/jsz'] = 'silent'
  await aWhile()
  expect(said).toEqual([])
})

test.concurrent('when all ends while it is started again, it stays away', async (context) => {
  const { promise: ended, resolve: end } = Promise.withResolvers<void>()
  const { answers, said, aWhile, stop, pid } = await guarded(context, { stop: () => ended })
  await aWhile()
  answers['/jsz'] = 'silent'
  await vi.waitUntil(() => said.length === 1, 20_000)
  const stopping = stop()
  end()
  await stopping
  expect(pid()).toBe(1)
})
