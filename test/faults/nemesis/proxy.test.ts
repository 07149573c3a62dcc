import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { listen } from '../../listen.ts'
import { startProxy } from './proxy.ts'

/** A server that answers with what it is sent, behind a proxy. */
async function startEcho() {
  const server = createServer((socket) => socket.on('error', () => {}).pipe(socket))
  const proxy = await startProxy(`nats://user:word@127.0.0.1:${await listen(server)}`)
  onTestFinished(() => {
    proxy.close()
    server.close()
  })
  return proxy
}

async function dial(url: string) {
  const socket = connect({ host: '127.0.0.1', port: Number(new URL(url).port), allowHalfOpen: true })
  socket.setEncoding('utf8')
  const got: string[] = []
  const errors: string[] = []
  socket.on('data', (text: string) => got.push(text))
  // One that is refused learns it before or after it is connected.
  socket.on('error', (err: NodeJS.ErrnoException) => errors.push(err.code ?? ''))
  await new Promise<void>((resolve) => socket.once('connect', resolve).once('close', () => resolve()))
  onTestFinished(() => void socket.destroy())
  return { socket, errors, text: () => got.join('') }
}

test('passes everything on, and the end of it', async () => {
  const { url } = await startEcho()
  expect(url).toMatch(/^nats:\/\/user:word@127\.0\.0\.1:\d+$/)
  const { socket, text } = await dial(url)
  const words = 'x'.repeat(1_000_000)
  socket.end(words)
  await once(socket, 'end')
  expect(text() === words).toBe(true)
})

test('delays, and keeps the order when the delay ends', async () => {
  const proxy = await startEcho()
  const { socket, text } = await dial(proxy.url)
  proxy.delay(150)
  const startedAt = performance.now()
  socket.write('a')
  await expect.poll(text, { interval: 5 }).toBe('a')
  expect(performance.now() - startedAt).toBeGreaterThan(290)
  proxy.delay(10_000)
  socket.write('b')
  await sleep(20)
  proxy.heal()
  socket.write('c')
  await expect.poll(text).toBe('abc')
})

test('swallows without a word, and delivers after the healing', async () => {
  const proxy = await startEcho()
  const { socket, text, errors } = await dial(proxy.url)
  proxy.swallow()
  socket.write('a')
  const late = await dial(proxy.url)
  late.socket.write('b')
  await sleep(100)
  expect([text(), late.text(), errors]).toEqual(['', '', []])
  proxy.heal()
  await expect.poll(() => [text(), late.text()]).toEqual(['a', 'b'])
})

test('resets what is connected, or whoever comes', async () => {
  const proxy = await startEcho()
  const first = await dial(proxy.url)
  first.socket.write('a')
  await expect.poll(first.text).toBe('a')
  proxy.reset()
  await expect.poll(() => first.errors).toEqual(['ECONNRESET'])
  const second = await dial(proxy.url)
  second.socket.write('b')
  await expect.poll(second.text).toBe('b')
  proxy.refuse()
  await expect.poll(() => second.errors).toEqual(['ECONNRESET'])
  const third = await dial(proxy.url)
  await expect.poll(() => third.errors).toEqual(['ECONNRESET'])
  proxy.heal()
  const fourth = await dial(proxy.url)
  fourth.socket.write('d')
  await expect.poll(fourth.text).toBe('d')
})
