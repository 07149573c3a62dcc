import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'

const root = join(import.meta.dirname, '../..')

/** A nats-server that is frozen: it takes connections and says nothing. */
const held: Socket[] = []
const mute = createServer((socket) => void held.push(socket.on('error', () => {})))
beforeAll(async () => {
  mute.listen(0, '127.0.0.1')
  await once(mute, 'listening')
})
afterAll(() => {
  for (const socket of held) socket.destroy()
  mute.close()
})

const natsUrl = () => `nats://127.0.0.1:${(mute.address() as AddressInfo).port}`

const run = (...args: string[]): Promise<{ code: unknown; said: string }> =>
  new Promise((resolve) => {
    const env = { ...process.env, NATS_URL: natsUrl() }
    execFile(process.execPath, args, { cwd: root, env, timeout: 15_000 }, (err, stdout, stderr) => {
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
  30_000,
)
