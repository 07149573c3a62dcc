import { createServer } from 'node:net'
import { startProxy } from '@app/test/faults/nemesis/proxy.ts'
import { freePort } from '@app/test/free-port.ts'
import { listen } from '@app/test/listen.ts'
import { startTestNats } from '@app/test/nats.ts'
import { runCode } from '@app/test/run-code.ts'
import { until } from '@app/test/until.ts'
import { nkeys } from 'nats'
import { expect, onTestFinished, test } from 'vitest'
import { start } from './start.ts'

test('a service that waits for its first nats-server names it when it is asked whether it is ready', async () => {
  const nats = await startTestNats()
  onTestFinished(nats.stop)
  const proxy = await startProxy(nats.url)
  onTestFinished(proxy.close)
  proxy.refuse()
  const env = { NATS_URL: proxy.url, NATS_REPLICAS: 1, LOG_LEVEL: 'silent', PROBE_HOST: '127.0.0.1' }
  const port = await freePort()
  const starting = start('platform', { ...env, PROBE_PORT: port })
  const readiness = async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).text()
  expect(await until(readiness)).toBe('not ready: starting, nats\n')

  proxy.heal()
  const { nc, probes } = await starting
  onTestFinished(() => Promise.all([nc.close(), probes.close()]).then(() => {}))
  expect(await readiness()).toBe('not ready: starting\n')
})

test('a seed that is none, or whose user nats-server does not know, is a wrong setting that is named', async () => {
  const strict = createServer((socket) => {
    socket
      .on('error', () => {})
      .write('INFO {"version":"2.12.0","max_payload":8388608,"nonce":"n","auth_required":true}\r\n')
    socket.on('data', () => socket.end("-ERR 'Authorization Violation'\r\n"))
  })
  onTestFinished(() => void strict.close())
  const NATS_URL = `nats://127.0.0.1:${await listen(strict)}`
  const code = `
    import { readEnv } from './environment.ts'
    import { start } from './start.ts'
    await start('platform', readEnv({}))
  `
  const seed = Buffer.from(nkeys.createUser().getSeed()).toString()
  // Not its last sign, of which some bits mean nothing.
  const misspelt = seed.replace(/.(?=.{9}$)/, (sign) => (sign === 'A' ? 'B' : 'A'))
  const ends = [misspelt, seed, ''].map(async (NATS_NKEY_SEED) => {
    const env = { NATS_URL, NATS_NKEY_SEED }
    const { exitCode, complained } = await runCode(import.meta.dirname, code, env)
    return `${exitCode}: ${complained}`
  })
  const unknown = 'must be the seed of the user "platform", or credentials that hold: nats-server refuses the login'
  expect(await Promise.all(ends)).toEqual(
    ['must be the nkey seed of a user (SU…), or the text of its file of credentials', unknown, unknown].map(
      (words) => `78: Wrong settings in the environment:\n✖ NATS_NKEY_SEED ${words}\n`,
    ),
  )
})
