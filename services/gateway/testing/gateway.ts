import { randomUUID } from 'node:crypto'
import { randomInt } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { rpc } from '@app/shared/api/contract.ts'
import { text } from '@app/shared/contracts/fields.ts'
import { serve, type Serving } from '@app/shared/bus/rpc.ts'
import type { Service } from '@app/shared/service/service.ts'
import { start } from '@app/shared/service/start.ts'
import { createStore } from '@app/shared/store/store.ts'
import { startTestNats } from '@app/test/nats.ts'
import { Agent, request } from 'undici'
import { inject } from 'vitest'
import { z } from 'zod'
import { createApp } from '../app.ts'
import { contractModules } from '../contracts.ts'
import { buildHttp } from '../http.ts'
import { budgetsIn, connectRedis } from '../limits/rate-lease.ts'
import { routeSetup } from '../onboarding/route-setup.ts'
import type { Signup } from '../onboarding/signup-settings.ts'
import { routeMedia } from '../media/serve-media.ts'
import { routeUpstreamCallbacks, type UpstreamSecrets } from '../upstream-callback.ts'
import { startTestPlatform } from './platform.ts'

const serviceEnv = { NATS_REPLICAS: 1, LOG_LEVEL: 'silent', PROBE_PORT: 0, PROBE_HOST: '127.0.0.1' }

export const secrets: UpstreamSecrets = { appSecret: 'app-secret', verifyToken: 'verify-token' }

const signup: Signup = {
  appId: '1000',
  configId: 'config-1',
  scriptUrl: 'https://connect.example/sdk.js',
  origins: ['https://dialog.example', 'https://web.dialog.example'],
  extras: '{"version":"v4"}',
  apiVersion: 'v23.0',
  isSecure: true,
  root: '/chat',
}

/** Endpoints that no service has. */
const echoes = {
  echo: rpc({
    subject: 'rpc.echo.echo',
    summary: 'Answers what it was asked',
    http: { method: 'POST', path: '/echoes/{name}', status: 201, tag: 'Echoes' },
    params: z.object({ name: text(1, 512) }),
    query: z.object({ q: z.unknown().optional() }),
    body: z.looseObject({}),
    answer: z.unknown(),
  }),
  echoSync: rpc({
    subject: 'rpc.echo.echo-sync',
    summary: 'Without a body, and as if it asked the platform',
    http: { method: 'POST', path: '/echoes/sync', tag: 'Echoes', asksOutside: true },
    answer: z.unknown(),
  }),
  echoBytes: rpc({
    subject: 'rpc.echo.echo-bytes',
    summary: 'Answers the bytes of its body',
    http: { method: 'POST', path: '/bytes', tag: 'Echoes' },
    query: z.object({ status: z.coerce.number().default(200), replayed: z.stringbool().default(false) }),
    body: z.instanceof(Uint8Array),
    answer: z.unknown(),
  }),
  echoTagged: rpc({
    subject: 'rpc.echo.echo-tagged',
    summary: 'Answers the text of its query, with an ETag',
    http: { method: 'GET', path: '/tagged', tag: 'Echoes', etag: true },
    query: z.object({ text: z.string().min(1) }),
    answer: z.unknown(),
  }),
  echoFeatured: rpc({
    subject: 'rpc.echo.echo-featured',
    summary: 'For who is entitled to it',
    http: { method: 'POST', path: '/featured', tag: 'Echoes', feature: 'webhooks' },
    body: z.looseObject({}),
    answer: z.unknown(),
  }),
  getNobody: rpc({
    subject: 'rpc.nobody.get-nobody',
    summary: 'Served by nobody',
    http: { method: 'GET', path: '/nobody', tag: 'Echoes' },
    answer: z.unknown(),
  }),
}

/** Endpoints' names, in the order in which they were asked. */
interface Echoing {
  passedOn: string[]
  /** From now on they wait, until the function that it answers is called. */
  holdEchoes: () => () => void
}

async function serveEchoes(peer: Service): Promise<Echoing & Serving> {
  const { echo, echoSync, echoBytes, echoTagged, echoFeatured } = echoes
  let gate = Promise.resolve()
  const passedOn: string[] = []
  const pass = (name: string) => {
    passedOn.push(name)
    return gate
  }
  const serving = await serve(
    { ...peer, name: 'platform' },
    { echo, echoSync, echoBytes, echoTagged, echoFeatured },
    {
      echo: (_app, input, caller) => pass('echo').then(() => ({ input, caller })),
      echoSync: (_app, input, caller) => pass('echoSync').then(() => ({ input, caller })),
      echoFeatured: () => pass('echoFeatured').then(() => ({})),
      echoTagged: (_app, { query }) => pass('echoTagged').then(() => ({ text: query.text })),
      echoBytes: (_app, { query, body }) => pass('echoBytes').then(() => ({ whole: true, ...query, body })),
    },
  )
  return {
    ...serving,
    passedOn,
    holdEchoes() {
      const { promise, resolve } = Promise.withResolvers<void>()
      gate = promise
      return resolve
    },
  }
}

/**
 * A gateway with its HTTP server, on a bus of its own with a peer that plays the services. It shares its event loop with the test and
 * with those services: how late that is on a busy machine says nothing about it, so it turns nothing away unless it is told to.
 */
export async function startTestGateway({
  redisUrl = inject('redisUrl'),
  trustedProxies = 1,
  maxEventLoopDelay = 0,
} = {}) {
  const nats = await startTestNats()
  const env = { ...serviceEnv, NATS_URL: nats.url }
  const [service, peer] = await Promise.all([start('gateway', env), start('platform', env)])
  const [platform, echoing] = await Promise.all([startTestPlatform(peer), serveEchoes(peer)])
  const redis = connectRedis(redisUrl, service.log)
  // All gateways of all tests are asked from one address, whose wrong keys are counted.
  redis.options.keyPrefix = `${randomUUID()}:`
  await new Promise((resolve) => redis.once('ready', resolve))
  const mediaDir = mkdtempSync(join(tmpdir(), 'media-'))
  const store = createStore({ MEDIA_STORE: 'folder', MEDIA_DIR: mediaDir, S3_REGION: 'us-east-1' })
  const app = createApp(service, { budgets: budgetsIn(redis, 10_000), store, trustedProxies })
  const http = await buildHttp(
    app,
    [...Object.values(contractModules), echoes],
    { openapi: '3.1.0' },
    maxEventLoopDelay,
  )
  routeMedia(http, app)
  routeUpstreamCallbacks(http, app, secrets)
  routeSetup(http, app, signup)
  const url = await http.listen({ host: '127.0.0.1', port: 0 })
  const agent = new Agent({ connections: 64 })
  return {
    app,
    http,
    url,
    nats,
    mediaDir,
    peer,
    platform,
    passedOn: echoing.passedOn,
    holdEchoes: echoing.holdEchoes,
    ask: askerOf(url, agent),
    async close() {
      await agent.destroy()
      await http.close()
      await app.apiLog.stop()
      redis.disconnect()
      await Promise.all([platform.stop(), echoing.stop()])
      for (const { nc, probes } of [peer, service]) {
        await nc.close()
        await probes.close()
      }
      await nats.stop()
      rmSync(mediaDir, { recursive: true })
    },
  }
}

export type TestGateway = Awaited<ReturnType<typeof startTestGateway>>

interface Asked {
  method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'HEAD'
  /** The text of an API key. */
  key?: string | undefined
  headers?: Record<string, string | string[]>
  /** Objects are sent as JSON. */
  body?: object | string | Buffer
}

/** Sends a request from an address that no other test has, unless told otherwise. */
function askerOf(url: string, dispatcher: Agent) {
  const ip = `10.${randomInt(256)}.${randomInt(256)}.${randomInt(256)}`
  return async (path: string, { method, key, headers = {}, body }: Asked = {}) => {
    const isJson = typeof body === 'object' && !Buffer.isBuffer(body)
    const response = await request(url + path, {
      dispatcher,
      method: method ?? (body === undefined ? 'GET' : 'POST'),
      headers: {
        'x-forwarded-for': ip,
        ...(key !== undefined && { authorization: `Bearer ${key}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      body: isJson ? JSON.stringify(body) : (body ?? null),
    })
    const bytes = Buffer.from(await response.body.arrayBuffer())
    return { status: response.statusCode, headers: response.headers, bytes, json: () => JSON.parse(bytes.toString()) }
  }
}
