import { createServer, type Socket } from 'node:net'
import { startProxy } from '@app/test/faults/nemesis/proxy.ts'
import { listen } from '@app/test/listen.ts'
import { startTestNats } from '@app/test/nats.ts'
import { until } from '@app/test/until.ts'
import { connect } from 'nats'
import { pino } from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { connectBus } from './bus.ts'

const log = pino({ level: 'silent' })

/** A nats-server that takes connections, and does all else when it is told to. */
async function startLateServer() {
  const sockets: Socket[] = []
  let heard = ''
  const server = createServer((socket) => {
    sockets.push(socket.on('error', () => {}))
    socket.on('data', (piece: Buffer) => (heard += piece.toString()))
  })
  const port = await listen(server)
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return {
    url: `nats://127.0.0.1:${port}`,
    sockets,
    greet: () =>
      sockets.forEach((socket) => socket.write('INFO {"version":"2.9.10","max_payload":8388608,"headers":true}\r\n')),
    heard: () => heard,
    answer: () => sockets.forEach((socket) => socket.write('PONG\r\n')),
    stopReading: () => sockets.forEach((socket) => socket.pause()),
    end: () => sockets.forEach((socket) => socket.destroySoon()),
  }
}

test('a connection that greets after it was given up does not end the one that was made instead', async () => {
  const nats = await startTestNats()
  onTestFinished(nats.stop)
  const [near, late] = [await startProxy(nats.url), await startLateServer()]
  onTestFinished(near.close)
  const bus = await connectBus('tester', near.url, log, {
    servers: [near.url, late.url],
    noRandomize: true,
    timeout: 300,
  })
  const publisher = await connect({ servers: nats.url })
  onTestFinished(() => Promise.all([bus.nc.close(), publisher.close()]).then(() => {}))
  const got: string[] = []
  bus.nc.subscribe('said', { callback: (_err, message) => void got.push(message.string()) })
  const connections: string[] = []
  void (async () => {
    for await (const { type } of bus.nc.status()) if (['disconnect', 'reconnect'].includes(type)) connections.push(type)
  })()

  near.refuse()
  await until(() => expect(late.sockets.length).toBeGreaterThan(0))
  near.heal()
  await until(() => expect(connections).toContain('reconnect'))
  const before = [...connections]
  late.greet()
  late.end()
  await bus.nc.flush()
  publisher.publish('said', 'once')
  await publisher.flush()
  await until(() => expect(got.length).toBeGreaterThan(0))
  await bus.nc.flush()
  expect({ got, connections }).toEqual({ got: ['once'], connections: before })
})

test('a server that reads nothing is given up, however much waits to be written to it', async () => {
  const nats = await startTestNats()
  onTestFinished(nats.stop)
  const full = await startLateServer()
  const servers = [full.url, nats.url]
  const options = { servers, noRandomize: true, pingInterval: 200, timeout: 300 }
  const connecting = connectBus('tester', full.url, log, options)
  await until(() => expect(full.sockets).toHaveLength(1))
  full.greet()
  await until(() => expect(full.heard()).toContain('PING'))
  full.answer()
  const bus = await connecting
  onTestFinished(() => bus.nc.close())
  full.stopReading()
  for (let n = 0; n < 32; n++) bus.nc.publish('said', new Uint8Array(1024 * 1024))
  await until(() => expect(bus.nc.getServer()).toBe(new URL(nats.url).host), 5_000)
})
