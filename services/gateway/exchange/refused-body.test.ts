import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { listen } from '@app/test/listen.ts'
import { until } from '@app/test/until.ts'
import { expect, onTestFinished, test, vi } from 'vitest'
import { bodyTimeoutMs } from './read-body.ts'
import { respond } from './respond.ts'

/** A request that was answered before its body came; `drip` brings a byte of it, `pass` lets time pass. */
async function answeredEarly() {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const server = createServer((_request, response) => respond(response, 401, ['Content-Length', '2'], 'no'))
  const socket = connect(await listen(server), '127.0.0.1')
  onTestFinished(() => {
    vi.useRealTimers()
    socket.destroy()
    server.close()
  })
  socket.write('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n')
  const [[request]] = (await Promise.all([once(server, 'request'), once(socket, 'data')])) as [
    [IncomingMessage],
    unknown,
  ]
  let isOpen = true
  request.once('close', () => (isOpen = false))
  return {
    socket,
    isOpen: () => isOpen,
    drip: () => {
      socket.write('x')
      return once(request, 'data')
    },
    pass: (ms: number) => vi.advanceTimersByTimeAsync(ms),
  }
}

test('a client that says no more of its refused body is sent away after 5 s, and no timer stays', async () => {
  const { isOpen, drip, pass } = await answeredEarly()
  for (let n = 0; n < 3; n++) {
    await pass(4_000)
    await drip()
  }
  expect(isOpen()).toBe(true)
  await pass(5_000)
  await until(() => expect(isOpen()).toBe(false))
  expect(vi.getTimerCount()).toBe(0)
})

test('nor does one that goes on for long keep its connection, or one that goes away a timer', async () => {
  const slow = await answeredEarly()
  for (let passedMs = 0; passedMs < bodyTimeoutMs - 2_000; passedMs += 4_000) {
    await slow.drip()
    await slow.pass(4_000)
  }
  await slow.drip()
  expect(slow.isOpen()).toBe(true)
  await slow.pass(2_000)
  await until(() => expect(slow.isOpen()).toBe(false))
  const gone = await answeredEarly()
  gone.socket.destroy()
  await until(() => expect(gone.isOpen()).toBe(false))
  expect(vi.getTimerCount()).toBe(0)
})
