import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { startProxy } from '@app/test/faults/nemesis/proxy.ts'
import { startTestNats } from '@app/test/nats.ts'
import { until } from '@app/test/until.ts'
import { connect } from 'nats'
import { pino } from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { connectBus } from './bus.ts'

/** A nats-server that takes connections and greets them when it is told to. */
async function startLateServer() {
  const sockets: Socket[] = []
  const server = createServer((socket) => {
    sockets.push(socket.on('error', () => {}))
    socket.resume()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return {
    url: `nats://127.0.0.1:${(server.address() as AddressInfo).port}`,
    sockets,
    greet: () => sockets.forEach((socket) => socket.write('INFO {"max_payload":8388608,"headers":true}\r\n')),
    end: () => sockets.forEach((socket) => socket.destroySoon()),
  }
}

test('a connection that greets after it was given up does not end the one that was made instead', async () => {
  const nats = await startTestNats()
  onTestFinished(nats.stop)
  const [near, late] = [await startProxy(nats.url), await startLateServer()]
  onTestFinished(near.close)
  const log = pino({ level: 'silent' })
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
