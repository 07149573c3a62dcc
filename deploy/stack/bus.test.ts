import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { withBus } from './bus.ts'

const root = join(import.meta.dirname, '../..')

/** A nats-server that is frozen: it takes connections and says nothing. */
const held: Socket[] = []
const mute = createServer((socket) => void held.push(socket.on('error', () => {})))
beforeAll(async () => {
  for (const server of [mute, strict]) {
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
  }
})
afterAll(() => {
  for (const socket of held) socket.destroy()
  for (const server of [mute, strict]) server.close()
})

/** One that refuses every login. */
const strict = createServer((socket) => {
  held.push(socket.on('error', () => {}))
  socket.write('INFO {"version":"2.9.10","max_payload":8388608,"jetstream":true,"auth_required":true}\r\n')
  socket.on('data', () => socket.end("-ERR 'Authorization Violation'\r\n"))
})

const portOf = (server: Server) => (server.address() as AddressInfo).port
const natsUrl = () => `nats://127.0.0.1:${portOf(mute)}`

const run = (...args: string[]): Promise<{ code: unknown; said: string }> =>
  new Promise((resolve) => {
    const env = { ...process.env, NATS_URL: natsUrl() }
    execFile(process.execPath, args, { cwd: root, env, timeout: 30_000 }, (err, stdout, stderr) => {
      resolve({ code: err?.killed ? 'never ended' : (err?.code ?? 0), said: stdout + stderr })
    })
  })

test.concurrent.each([['deploy/admin.ts', 'organization', 'list'], ['deploy/provision.ts']])(
  '%s ends with a sentence at a nats-server that takes connections and says nothing',
  async (...args) => {
    const { code, said } = await run(...args)
    expect(said).toContain(`The nats-server at ${natsUrl()} cannot be reached: TIMEOUT`)
    expect(code).toBe(1)
  },
  45_000,
)

test('a nats-server that is too busy to greet is asked once more', async () => {
  const natsPort = Number(new URL(inject('natsUrl')).port)
  let asked = 0
  const busy = createServer((near) => {
    held.push(near.on('error', () => {}))
    if (asked++ === 0) return
    const far = connect(natsPort, '127.0.0.1').on('error', () => near.destroy())
    near.pipe(far).pipe(near)
  })
  await once(busy.listen(0, '127.0.0.1'), 'listening')
  const bus = { natsUrl: `nats://127.0.0.1:${portOf(busy)}` }
  expect(await withBus(bus, async ({ isConnected }) => isConnected())).toBe(true)
  expect(asked).toBe(2)
  busy.close()
})

test('a login that is refused is told with what is needed, and without the password of the address', async () => {
  const place = {
    natsUrl: `nats://me:secret@127.0.0.1:${portOf(strict)},nats://you:secret@127.0.0.1:${portOf(strict)}`,
  }
  const asking = withBus(place, async () => {})
  await expect(asking).rejects.toThrow(/^The nats-server at nats:\/\/127[^@]* does not know us: NATS_NKEY_SEED must be/)
  await expect(asking).rejects.not.toThrow(/secret/)
})

test('a password that begins with a digit is not taken for the port', async () => {
  const asking = withBus({ natsUrl: `nats://me:1secret@127.0.0.1:${portOf(strict)}` }, async () => {})
  await expect(asking).rejects.toThrow(/^The nats-server at nats:\/\/127[^@]* does not know us/)
})

test('a seed that is none is told by the name of its setting, and not shown', async () => {
  const asking = withBus({ natsUrl: `nats://127.0.0.1:${portOf(strict)}`, natsSeed: 'SUMISTYPED' }, async () => {})
  await expect(asking).rejects.toThrow(/^The nats-server at nats:\/\/127.* cannot be asked: NATS_NKEY_SEED must be/)
  await expect(asking).rejects.not.toThrow(/MISTYPED/)
})
