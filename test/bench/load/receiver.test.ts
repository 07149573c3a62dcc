import { once } from 'node:events'
import { connect } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { startChild } from '../child.ts'
import type { Receiver } from './receiver.ts'

async function startReceiver() {
  const receiver = startChild<Receiver>('load/receiver.ts')
  onTestFinished(receiver.stop)
  const { url } = await receiver.ask('start', undefined)
  const post = (path: string, eventId: string, body: string) =>
    fetch(url + path, { method: 'POST', headers: { 'x-svc-event-id': eventId }, body })
  return { receiver, url, post }
}

test('keeps what arrives, with the envelope’s time', async () => {
  const { receiver, post } = await startReceiver()
  await receiver.ask('record', { keep: true })
  const from = Date.now()
  const createdAt = '2026-03-01T12:00:00.000Z'
  expect((await post('/a', 'evt_1', JSON.stringify({ created_at: createdAt, data: 'é'.repeat(100_000) }))).status).toBe(
    200,
  )
  expect((await post('/b', 'evt_2', '{}')).status).toBe(200)
  const arrivals = await receiver.ask('arrivals', undefined)
  expect(arrivals).toMatchObject([
    { eventId: 'evt_1', path: '/a', createdAt: Date.parse(createdAt) },
    { eventId: 'evt_2', path: '/b', createdAt: null },
  ])
  expect(arrivals[0]?.at).toBeGreaterThanOrEqual(from)
})

test('counts an event that comes twice once', async () => {
  const { receiver, post } = await startReceiver()
  await receiver.ask('record', { keep: false })
  for (const eventId of ['evt_1', 'evt_2', 'evt_1']) await post('/', eventId, '{}')
  expect(await receiver.ask('count', undefined)).toMatchObject({ events: 2 })
})

test('answers each of several requests that come in pieces', async () => {
  const { receiver, url } = await startReceiver()
  await receiver.ask('record', { keep: false })
  const request = (eventId: string) => `POST / HTTP/1.1\r\ncontent-length: 2\r\nx-svc-event-id: ${eventId}\r\n\r\n{}`
  const bytes = request('evt_1') + request('evt_2')
  const socket = connect(Number(new URL(url).port), '127.0.0.1').setNoDelay()
  onTestFinished(() => void socket.destroy())
  let answers = ''
  socket.on('data', (data) => (answers += data.toString()))
  for (const piece of [bytes.slice(0, 30), bytes.slice(30, 100), bytes.slice(100)]) {
    socket.write(piece)
    await new Promise((resolve) => setImmediate(resolve))
  }
  while (answers.split('200 OK').length < 3) await once(socket, 'data')
  expect(await receiver.ask('count', undefined)).toMatchObject({ events: 2 })
})

test('leaves those waiting that it was told to, until they are released', async () => {
  const { receiver, post } = await startReceiver()
  await receiver.ask('record', { keep: false })
  await receiver.ask('hang', ['/hangs'])
  const waiting = post('/hangs', 'evt_1', '{}').then(
    () => 'answered',
    () => 'dropped',
  )
  expect((await post('/answers', 'evt_2', '{}')).status).toBe(200)
  expect(await receiver.ask('count', undefined)).toMatchObject({ events: 2 })
  await receiver.ask('release', undefined)
  expect(await waiting).toBe('dropped')
})
