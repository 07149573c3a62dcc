import { readFileSync } from 'node:fs'
import { createServer as createHttpServer, type IncomingMessage, type RequestListener } from 'node:http'
import { createServer } from 'node:https'
import { connect, createServer as createTcpServer, type Server } from 'node:net'
import type { Duplex } from 'node:stream'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { connectTo, createUpstream, upstreamSettings } from '@app/shared/outside/upstream.ts'
import { listen } from '@app/test/listen.ts'
import { request } from 'undici'
import { afterEach, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { outgoingMessage } from '../testing/outgoing-message.ts'
import { send } from './send.ts'

/** The platform is behind a proxy: nobody else knows its name. */
const name = 'platform.test'
const pem = readFileSync(new URL('../../../test/platform-certificate.pem', import.meta.url), 'utf8')
const trusted = getCACertificates('default')
const trustThePlatform = () => setDefaultCACertificates([...trusted, pem.slice(pem.indexOf('-----BEGIN CERTIFICATE'))])
afterEach(() => setDefaultCACertificates(trusted))

/** Until the test is over; answers the port. */
function listenForTest(server: Server) {
  onTestFinished(() => void server.close())
  return listen(server)
}

/** The platform, which answers as told. */
const startPlatform = (respond: RequestListener) => listenForTest(createServer({ key: pem, cert: pem }, respond))

type Tunnel = (asked: IncomingMessage, client: Duplex) => void

/** A proxy that answers each CONNECT as told; what it was asked. */
async function startProxy(tunnel: Tunnel) {
  const asked: { to: string | undefined; by: string | undefined }[] = []
  const proxy = createHttpServer().on('connect', (incoming, client) => {
    asked.push({ to: incoming.url, by: incoming.headers['proxy-authorization'] })
    client.on('error', () => {})
    tunnel(incoming, client)
  })
  return { asked, port: await listenForTest(proxy) }
}

const tunnelTo =
  (port: number): Tunnel =>
  (_asked, client) => {
    const host = connect(port, '127.0.0.1', () => {
      client.write('HTTP/1.1 200 Connection Established\r\n\r\n')
      client.pipe(host).pipe(client)
    })
    host.on('error', () => client.destroy())
  }

function sendThrough(proxy: string) {
  const upstream = createUpstream(
    z.object(upstreamSettings).parse({
      UPSTREAM_APP_ID: '1000',
      UPSTREAM_BASE_URL: `https://${name}`,
      UPSTREAM_PROXY_URL: proxy,
    }),
  )
  onTestFinished(() => upstream.sending.destroy())
  return send(upstream, outgoingMessage)
}

test('a send goes through the proxy, which is asked by name, with its password, and sees nothing of it', async () => {
  trustThePlatform()
  const platform = await startPlatform((_request, response) => response.end('{"messages":[{"id":"wamid.1"}]}'))
  const proxy = await startProxy(tunnelTo(platform))
  expect(await sendThrough(`http://user:pass@127.0.0.1:${proxy.port}`)).toMatchObject({
    kind: 'accepted',
    upstreamId: 'wamid.1',
  })
  const by = `Basic ${Buffer.from('user:pass').toString('base64')}`
  expect(proxy.asked).toEqual([{ to: `${name}:443`, by }])
})

test('so do files', async () => {
  trustThePlatform()
  const platform = await startPlatform((_request, response) => response.end('a file'))
  const proxy = await startProxy(tunnelTo(platform))
  const dispatcher = connectTo(`http://127.0.0.1:${proxy.port}`, { connections: 1 })
  onTestFinished(() => dispatcher.destroy())
  const { body } = await request(`https://${name}/file`, { dispatcher })
  expect([await body.text(), proxy.asked.length]).toEqual(['a file', 1])
})

test('a proxy that refuses, one that says nothing, and one that is away have surely told the platform nothing', async () => {
  const refusing = await startProxy((_asked, client) => client.end('HTTP/1.1 502 Bad Gateway\r\n\r\n'))
  const silent = await startProxy(() => {})
  const closing = await startProxy((_asked, client) => client.destroy())
  const away = createTcpServer()
  const awayPort = await listenForTest(away)
  await new Promise((resolve) => away.close(resolve))
  const ports = [refusing.port, silent.port, closing.port, awayPort]
  const results = await Promise.all(ports.map((port) => sendThrough(`http://127.0.0.1:${port}`)))
  expect(results).toEqual(ports.map(() => ({ kind: 'unreachable', details: expect.any(String) })))
})

test('behind a proxy a platform whose certificate is not trusted is told nothing, and one that hangs up has an unknown outcome', async () => {
  const platform = await startPlatform((incoming) => incoming.socket.destroy())
  const proxy = await startProxy(tunnelTo(platform))
  const through = `http://127.0.0.1:${proxy.port}`
  expect(await sendThrough(through)).toMatchObject({ kind: 'unreachable' })
  trustThePlatform()
  expect(await sendThrough(through)).toMatchObject({ kind: 'unknown', httpStatus: null })
})
