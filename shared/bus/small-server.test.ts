import { createServer, type Socket } from 'node:net'
import { listen } from '@app/test/listen.ts'
import { until } from '@app/test/until.ts'
import { headers } from 'nats'
import { pino } from 'pino'
import { expect, onTestFinished, test, vi } from 'vitest'
import { connectBus } from './bus.ts'

/** A nats-server that takes as many bytes a message, and as many subscriptions, as it is set to when a client comes. */
async function startSettable(settings: { bytes: number; subscriptions?: number }) {
  const sockets: Socket[] = []
  const server = createServer((socket) => {
    sockets.push(socket.on('error', () => {}))
    let left = settings.subscriptions ?? 1_000
    socket.on('data', (piece: Buffer) => {
      for (const _subscription of piece.toString().matchAll(/^SUB/gm))
        if (left-- <= 0) socket.write("-ERR 'maximum subscriptions exceeded'\r\n")
      for (const _ping of piece.toString().matchAll(/^PING/gm)) socket.write('PONG\r\n')
    })
    socket.write(`INFO {"version":"2.12.0","max_payload":${settings.bytes},"headers":true}\r\n`)
  })
  const port = await listen(server)
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { url: `nats://127.0.0.1:${port}`, end: () => sockets.at(-1)?.destroy() }
}

test('a server that takes too little since its last start is told, not used, and left until one takes enough', async () => {
  const settings = { bytes: 8 * 1024 * 1024 }
  const server = await startSettable(settings)
  const log = pino({ level: 'silent' })
  const said = vi.spyOn(log, 'error')
  const bus = await connectBus('tester', server.url, log)
  onTestFinished(() => bus.nc.close())
  let reconnections = 0
  bus.onReconnect(() => reconnections++)
  settings.bytes = 1_024
  server.end()
  await until(() => expect(said).toHaveBeenCalled())
  expect(said.mock.lastCall?.[1]).toContain('nats-server allows 1024 bytes a message: set max_payload to 8388608')
  expect([bus.isConnected(), reconnections]).toEqual([false, 0])
  await expect(bus.request('rpc.messaging.ask', Buffer.alloc(0), headers(), 500)).rejects.toThrow('DISCONNECT')
  settings.bytes = 8 * 1024 * 1024
  await until(() => expect([bus.isConnected(), reconnections]).toEqual([true, 1]))
})

test('a server that takes no more subscriptions is told, not used, and left until it takes all', async () => {
  const settings = { bytes: 8 * 1024 * 1024, subscriptions: 2 }
  const server = await startSettable(settings)
  const log = pino({ level: 'silent' })
  const said = vi.spyOn(log, 'error')
  const bus = await connectBus('tester', server.url, log)
  onTestFinished(() => bus.nc.close())
  for (const subject of ['rpc.tester.one', 'rpc.tester.two']) bus.nc.subscribe(subject)
  await until(() => expect(bus.isConnected()).toBe(false))
  expect(said.mock.calls).toEqual([[{ server: expect.any(String) }, expect.stringContaining('more subscriptions')]])
  settings.subscriptions = 1_000
  await until(() => expect(bus.isConnected()).toBe(true))
})
