import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { call, systemCaller } from '@app/shared/bus/ask.ts'
import { putSender } from '@app/shared/contracts/messaging.ts'
import { syncTemplates } from '@app/shared/contracts/templates.ts'
import { sealToken } from '@app/shared/secrets/account-token.ts'
import { newId } from '@app/shared/values/ids.ts'
import { newAccountState } from '@app/test/account-state.ts'
import { compileCache } from '@app/test/compile-cache.ts'
import { listen } from '@app/test/listen.ts'
import { testService } from '@app/test/service.ts'
import { until } from '@app/test/until.ts'
import { expect, onTestFinished, test } from 'vitest'
import { insertSends } from './sends/insert-sends.ts'
import { newSend } from './testing/sends.ts'

const key = Buffer.alloc(32, 1)

/** A platform that leaves every call without an answer. */
async function startSilentPlatform() {
  const calls: ServerResponse[] = []
  const server = createServer((_request, response) => void calls.push(response))
  onTestFinished(() => server.close().closeAllConnections())
  return { calls, url: `http://127.0.0.1:${await listen(server)}` }
}

/** The process, and what it logs. */
async function startMessaging(upstreamUrl: string) {
  const beside = await testService('messaging')
  const mediaDir = mkdtempSync(join(tmpdir(), 'media-'))
  const messaging: ChildProcess = spawn(process.execPath, [join(import.meta.dirname, 'main.ts')], {
    env: {
      ...compileCache,
      DATABASE_URL: beside.databaseUrl,
      NATS_URL: beside.natsUrl,
      SEAL_KEYS: `k1:${key.toString('base64')}`,
      CURSOR_KEYS: `k1:${Buffer.alloc(32, 2).toString('base64')}`,
      PUBLIC_URL: 'http://gateway.example:8080',
      MEDIA_DIR: mediaDir,
      UPSTREAM_APP_ID: '1000',
      UPSTREAM_BASE_URL: upstreamUrl,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let said = ''
  messaging.stdout?.on('data', (chunk: Buffer) => (said += chunk.toString()))
  onTestFinished(async () => {
    messaging.kill('SIGKILL')
    await beside.close()
    rmSync(mediaDir, { recursive: true })
  })
  return { beside, messaging, said: () => said }
}

test('told to stop, it begins no send, although it still waits for the answer of a question', async () => {
  const { calls, url } = await startSilentPlatform()
  const { beside, messaging, said } = await startMessaging(url)
  const accountId = newId('acc')
  const keys = { current: 'k1', byId: new Map([['k1', key]]) }
  const state = newAccountState({ account_id: accountId, sealed_token: sealToken(keys, 'token', accountId) })
  const { organization_id, phone_number_id } = state
  await until(() => call(beside, putSender, { body: state }, systemCaller()))

  const input = { params: { phone_number_id }, body: {} }
  const syncing = call(beside, syncTemplates, input, systemCaller(organization_id), { timeoutMs: 25_000 })
  await until(() => expect(calls.map(({ req }) => req.method)).toEqual(['GET']))
  const exited = once(messaging, 'exit')
  messaging.kill('SIGTERM')
  await until(() => expect(said()).toContain('"stopping"'))
  const send = newSend('hello', '+15550123456', { organization_id, phone_number_id })
  const claim = { mayBegin: [false], leaseMs: 15_000, burstMs: 250, dueFrom: null, holder: 1 }
  expect(await insertSends(beside.sql, [send], claim)).toMatchObject([{ accepted: true, due: true }])
  // A dispatcher that takes work looks twice in that time.
  await sleep(3_000)
  expect(calls.map(({ req }) => req.method)).toEqual(['GET'])

  calls[0]?.setHeader('content-type', 'application/json').end('{"data":[]}')
  expect(await syncing).toMatchObject({ synced: 0 })
  expect(await exited).toEqual([0, null])
})
