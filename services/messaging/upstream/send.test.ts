import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exchangeWithUpstream } from '@app/shared/upstream-exchange.ts'
import { createUpstream } from '@app/shared/upstream.ts'
import { expect, onTestFinished, test, vi } from 'vitest'
import { send } from './send.ts'

test('calls of another kind that the platform leaves waiting take no connections of sends', async () => {
  const waiting: ServerResponse[] = []
  const server = createServer((request, response) => {
    if (request.method === 'GET') return waiting.push(response)
    response.writeHead(200, { 'content-type': 'application/json' }).end('{"messages":[{"id":"wamid.1"}]}')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const upstream = createUpstream({
    UPSTREAM_BASE_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    UPSTREAM_API_VERSION: 'v23.0',
    UPSTREAM_APP_ID: '1234567890',
    UPSTREAM_KEEPALIVE_MS: 1000,
    UPSTREAM_SUBSCRIBE_APPS: false,
  })
  onTestFinished(async () => {
    server.close().closeAllConnections()
    await upstream.close()
  })
  const over = new AbortController()
  const call = { method: 'GET', path: '/1', token: 't', signal: over.signal } as const
  // More than there are connections for them.
  const calls = Array.from({ length: 320 }, () => exchangeWithUpstream(upstream, call, 30_000).catch(() => null))
  await vi.waitFor(() => expect(waiting).toHaveLength(300), 10_000)
  const message = { phoneNumberId: '1', token: 't', messageId: 'msg_1', recipient: '+15550100001', contextId: null }
  const sent = send(upstream, { ...message, type: 'text', body: { body: 'hi' } })
  const answered = await Promise.race([sent, new Promise((resolve) => setTimeout(resolve, 5_000, 'waits in line'))])
  expect(answered).toMatchObject({ kind: 'accepted', upstreamId: 'wamid.1' })
  over.abort()
  await Promise.all(calls)
})
