import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import type { Supervised } from '../processes/supervise.ts'
import { keepJetStream } from './jetstream-guard.ts'

const lookEveryMs = 20
/** For some looks, of which each waits as long for an answer. */
const aWhile = () => sleep(lookEveryMs * 20)

type Answer = 'ok' | 'unwell' | 'silent'

/** What answers as a nats-server's monitoring does, under a guard. */
async function guarded({ leastFreeBytes = 0, storeFolder = tmpdir() } = {}) {
  const answers: Record<string, Answer> = { '/healthz': 'ok', '/jsz': 'ok' }
  const monitor = createServer(({ url = '' }, response) => {
    if (answers[url] !== 'silent') response.writeHead(answers[url] === 'ok' ? 200 : 503).end()
  })
  await new Promise<void>((resolve) => monitor.listen(0, '127.0.0.1', resolve))
  const said: string[] = []
  let pid = 1
  const server: Supervised = {
    name: 'nats',
    logFile: '',
    pid: () => pid,
    deaths: () => 0,
    isStopped: () => false,
    stop: async () => {},
    start: () => void (pid += 1),
  }
  const { stop } = keepJetStream({
    server,
    monitorUrl: `http://127.0.0.1:${(monitor.address() as AddressInfo).port}`,
    storeFolder,
    say: (sentence) => said.push(sentence),
    lookEveryMs,
    leastFreeBytes,
  })
  onTestFinished(async () => {
    await stop()
    monitor.close().closeAllConnections()
  })
  return { answers, said }
}

test.each([
  ['does not answer about its streams', '/jsz', 'silent'],
  ['says that it is not well', '/healthz', 'unwell'],
] as const)('a server that was well and %s is started again, once', async (_what, path, answer) => {
  const { answers, said } = await guarded()
  await aWhile()
  expect(said).toEqual([])
  answers[path] = answer
  await expect.poll(() => said.length).toBe(1)
  // The new one reads its streams, and may take its time.
  await aWhile()
  expect(said).toHaveLength(1)
})

test('one that answers nothing is frozen or gone, and left alone', async () => {
  const { answers, said } = await guarded()
  await aWhile()
  Object.assign(answers, { '/healthz': 'silent', '/jsz': 'silent' })
  await aWhile()
  expect(said).toEqual([])
})

test('it is not started again before its disk has room', async () => {
  const { answers, said } = await guarded({ leastFreeBytes: Number.MAX_SAFE_INTEGER })
  await aWhile()
  answers['/jsz'] = 'silent'
  await aWhile()
  expect(said).toEqual([])
})

test('one whose folder is gone, or on a disk that fails, is left alone, and the stack goes on', async () => {
  const { answers, said } = await guarded({ leastFreeBytes: 1, storeFolder: join(tmpdir(), 'that-is-not-there') })
  await aWhile()
  answers['/healthz'] = 'unwell'
  await aWhile()
  expect(said).toEqual([])
})
