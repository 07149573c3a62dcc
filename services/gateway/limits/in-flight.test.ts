import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import type { TestGateway } from '../testing/gateway.ts'
import { gatewayWithKey } from '../testing/gateway-with-key.ts'

const both = gatewayWithKey()
const { say } = both
let gateway: TestGateway
let key: string
beforeAll(() => void ({ gateway, key } = both))

test('slow clients of an organization, or strangers, hold no more than they leave to others, who find room beside two of them', async () => {
  const { hold, during } = gateway.app.inFlight
  const { organizationId, text: slow } = gateway.platform.issueKey()
  const half = 128 * 1024 * 1024
  const halved = () => [key, slow].map(async (one) => (await gateway.ask('/v1/bytes', { key: one, body: 'x' })).status)
  const forged = () =>
    gateway.ask('/upstream/callbacks', {
      body: 'x',
      headers: { 'x-hub-signature-256': 'sha256=', 'x-forwarded-for': '198.51.100.7' },
    })
  hold(organizationId, half)
  expect(() => hold(organizationId, 1)).toThrow('Too many')
  hold('another one', half / 2)
  expect(() => hold('another one', 1)).toThrow('Too many')
  expect(await Promise.all(halved())).toEqual([200, 503])
  expect((await forged()).status).toBe(401)
  hold(organizationId, -half)
  hold('another one', -half / 2)
  hold('strangers of 198.51.100.7', half / 4)
  expect(await Promise.all(halved())).toEqual([200, 200])
  const warn = vi.spyOn(gateway.app.log, 'warn')
  expect((await forged()).status).toBe(503)
  expect(warn).not.toHaveBeenCalled()
  warn.mockRestore()
  hold('strangers of 198.51.100.7', -half / 4)
  hold('strangers of 203.0.113.9', half / 4)
  expect((await forged()).status).toBe(401)
  hold('strangers of 203.0.113.9', -half / 4)
  const { promise, resolve } = Promise.withResolvers<void>()
  const run = (owner: string, count: number) => Array.from({ length: count }, () => during(owner, () => promise))
  const running = [...run(organizationId, 2_048), ...run('another one', 1_024)]
  expect(await Promise.all(halved())).toEqual([200, 503])
  await expect(during('another one', () => promise)).rejects.toThrow('Too many')
  resolve()
  await Promise.all(running)
  expect(await Promise.all(halved())).toEqual([200, 200])
})

test('answers that nobody reads count as held, until their client reads them or goes away', async () => {
  const { inFlight } = gateway.app
  const { organizationId, text: slow } = gateway.platform.issueKey()
  const size = 7_000_000
  const answering = gateway.peer.nc.subscribe('rpc.directory.list-labels', {
    callback: (_err, message) => void message.respond(Buffer.alloc(size, ' ')),
  })
  const { hostname, port } = new URL(gateway.url)
  const socket = connect(Number(port), hostname)
  onTestFinished(() => {
    socket.destroy()
    answering.unsubscribe()
  })
  socket.write(`GET /v1/labels HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${slow}\r\n\r\n`)
  await expect.poll(() => inFlight.bytes).toBe(size)
  const most = 128 * 1024 * 1024 - size
  inFlight.hold(organizationId, most)
  const [refused, beside] = await Promise.all([slow, key].map((one) => gateway.ask('/v1/labels', { key: one })))
  inFlight.hold(organizationId, -most)
  expect([refused?.status, beside?.status, beside?.bytes.length]).toEqual([503, 200, size])
  expect((await gateway.ask('/v1/labels', { key: slow })).status).toBe(200)
  expect(inFlight.bytes).toBe(size)
  socket.destroy()
  await expect.poll(() => inFlight.bytes).toBe(0)
})

test('what was done, and what is small, is answered however much its organization holds', async () => {
  const { hold } = gateway.app.inFlight
  const { organizationId, text: full } = gateway.platform.issueKey()
  const body = Buffer.alloc(20_000)
  const most = 128 * 1024 * 1024 - body.length
  hold(organizationId, most)
  expect((await gateway.ask('/v1/bytes', { key: full, body })).status).toBe(200)
  hold(organizationId, body.length)
  expect((await gateway.ask('/v1/tagged?text=a', { key: full })).status).toBe(200)
  hold(organizationId, -most - body.length)
  expect(gateway.app.inFlight.bytes).toBe(0)
})

test('a large answer that was read is given back once, also when its connection ends', async () => {
  const { text: own } = gateway.platform.issueKey()
  const answering = gateway.peer.nc.subscribe('rpc.directory.list-labels', {
    callback: (_err, message) => void message.respond(Buffer.alloc(100_000, ' ')),
  })
  const answer = say(`GET /v1/labels HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${own}\r\nconnection: close\r\n\r\n`)
  const [socket] = (await once(gateway.http.server, 'connection')) as [Socket]
  await once(socket, 'close')
  expect((await answer).length).toBeGreaterThan(100_000)
  answering.unsubscribe()
  expect(gateway.app.inFlight.bytes).toBe(0)
})

test('an answer whose client has gone by then counts as held no more', async () => {
  const { inFlight } = gateway.app
  const { id: keyId, text } = gateway.platform.issueKey()
  const asked = Promise.withResolvers<() => void>()
  const answering = gateway.peer.nc.subscribe('rpc.directory.list-labels', {
    callback: (_err, message) => asked.resolve(() => void message.respond(Buffer.alloc(100_000, ' '))),
  })
  onTestFinished(() => answering.unsubscribe())
  const { hostname, port } = new URL(gateway.url)
  const socket = connect(Number(port), hostname)
  socket.write(`GET /v1/labels HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${text}\r\n\r\n`)
  const respond = await asked.promise
  socket.destroy()
  // The gateway hears of it a moment later.
  await sleep(20)
  respond()
  await expect.poll(() => gateway.platform.apiCalls.some((call) => call.key_id === keyId)).toBe(true)
  await expect.poll(() => inFlight.bytes).toBe(0)
})
