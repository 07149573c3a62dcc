import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { exchangeWithUpstream } from '@app/shared/outside/upstream-exchange.ts'
import { createUpstream, sendsAtOnce, upstreamSettings } from '@app/shared/outside/upstream.ts'
import { listen } from '@app/test/listen.ts'
import { Agent } from 'undici'
import { until } from '@app/test/until.ts'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { outgoingMessage } from '../testing/outgoing-message.ts'
import { send } from './send.ts'

const env = z.object(upstreamSettings).parse({ UPSTREAM_APP_ID: '1000', UPSTREAM_BASE_URL: 'http://platform.test:9' })

/** Sends to a platform whose host has these addresses. */
function sendTo(...addresses: string[]) {
  const found = addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))
  const upstream = createUpstream(env)
  const sending = new Agent({ connect: { lookup: (_host, _options, done) => done(null, found) } })
  onTestFinished(() => Promise.all([sending.destroy(), upstream.close()]).then(() => undefined))
  return send({ ...upstream, sending }, outgoingMessage)
}

test.each([
  ['one address that no way leads to', ['224.0.0.1']],
  ['several addresses, none of which a way leads to', ['224.0.0.1', '224.0.0.2']],
  ['several addresses that refuse', ['127.0.0.1', '::1']],
  ['one that no way leads to and one that refuses', ['224.0.0.1', '127.0.0.1']],
])('a platform with %s was surely told nothing', async (_, addresses) => {
  expect(await sendTo(...addresses)).toMatchObject({
    kind: 'unreachable',
    details: expect.stringMatching(/^E[A-Z]+: ./),
  })
})

/** A platform that leaves waiting what is left to it, and takes every other send. */
async function platformThatLeaves(isLeft: (request: IncomingMessage) => boolean) {
  const waiting: ServerResponse[] = []
  const server = createServer((request, response) => {
    if (isLeft(request)) return waiting.push(response)
    response.writeHead(200, { 'content-type': 'application/json' }).end('{"messages":[{"id":"wamid.1"}]}')
  })
  const port = await listen(server)
  const upstream = createUpstream({ ...env, UPSTREAM_BASE_URL: `http://127.0.0.1:${port}` })
  onTestFinished(async () => {
    server.close().closeAllConnections()
    await upstream.close()
  })
  return { upstream, waiting }
}

const soon = (sent: Promise<unknown>) =>
  Promise.race([sent, new Promise((resolve) => setTimeout(resolve, 5_000, 'waits in line'))])

test('as many sends as are in work at a time wait for no connection, be there none that is answered', async () => {
  const slow = { ...outgoingMessage, phoneNumberId: '999999999999' }
  const { upstream, waiting } = await platformThatLeaves(({ url }) => url?.includes(slow.phoneNumberId) === true)
  const calls = Array.from({ length: sendsAtOnce - 1 }, () => send(upstream, slow))
  expect(await soon(send(upstream, outgoingMessage))).toMatchObject({ kind: 'accepted', upstreamId: 'wamid.1' })
  await until(() => expect(waiting).toHaveLength(calls.length))
  for (const response of waiting) response.destroy()
  await Promise.all(calls)
})

test('a send that may not begin any more when it has its connection was surely told to nobody', async () => {
  const { upstream, waiting } = await platformThatLeaves(() => true)
  const late = { ...outgoingMessage, mayBegin: () => false }
  expect(await soon(send(upstream, late))).toMatchObject({ kind: 'unreachable', details: 'it came too late to begin' })
  void send(upstream, outgoingMessage)
  await until(() => expect(waiting.length).toBeGreaterThan(0))
  expect(waiting).toHaveLength(1)
})

test('calls of another kind that the platform leaves waiting take no connections of sends', async () => {
  const { upstream, waiting } = await platformThatLeaves(({ method }) => method === 'GET')
  const over = new AbortController()
  const call = { method: 'GET', path: '/1', token: 't', signal: over.signal } as const
  // More than there are connections for them.
  const calls = Array.from({ length: 320 }, () => exchangeWithUpstream(upstream, call, 30_000).catch(() => null))
  await until(() => expect(waiting).toHaveLength(300))
  expect(await soon(send(upstream, outgoingMessage))).toMatchObject({ kind: 'accepted', upstreamId: 'wamid.1' })
  over.abort()
  await Promise.all(calls)
})
