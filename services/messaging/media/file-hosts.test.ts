import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { phoneNumberId, type TestMessaging, testMessaging } from '../testing/app.ts'
import { json } from '../testing/media-platform.ts'
import { download } from './download.ts'

let app: TestMessaging
beforeAll(async () => {
  app = await testMessaging()
})
afterAll(() => app.close())

test('a host of files in our own network, whoever names it, is called only where that is allowed', async () => {
  let calls = 0
  const inside = createServer((_request, response) => {
    calls++
    response.end('secret')
  })
  await once(inside.listen(0, '127.0.0.1'), 'listening')
  const { port } = inside.address() as AddressInfo
  // The address of none leads to this machine, too, and the test's own is allowed.
  app.files.answerWith((_call, response) => json(response, { url: `http://0.0.0.0:${port}/file` }))
  const media = { phoneNumberId, token: 'token', upstreamMediaId: '1', sha256: null }
  const result = await download(app, media, 'key')
  inside.close().closeAllConnections()
  expect([result, calls]).toEqual([
    { kind: 'failed', details: expect.stringMatching(/^blocked_address: /) as string },
    0,
  ])
})
