import { createHmac } from 'node:crypto'
import { Agent, type Dispatcher, Pool, ProxyAgent } from 'undici'
import { z } from 'zod'
import { apiVersion, appId, httpUrl, proxyUrl } from '../service/environment.ts'

/** The platform's settings in the environment. */
export const upstreamSettings = {
  UPSTREAM_BASE_URL: httpUrl.default('https://graph.facebook.com'),
  UPSTREAM_API_VERSION: apiVersion,
  /** Our app's id at the platform, under which samples of template headers are uploaded. */
  UPSTREAM_APP_ID: appId,
  /** Our app's secret: with it each call proves that it is our app's, as the platform may be set to demand. */
  UPSTREAM_APP_SECRET: z.string().min(1).optional(),
  /**
   * How long an idle connection is kept; shorter than the platform keeps it, since a request into a socket that the other
   * side is just closing has an unknown outcome. Measured with the same time on both sides: 37 of 150.
   */
  UPSTREAM_KEEPALIVE_MS: z.coerce.number().int().min(1).default(1_000),
  /** All calls to the platform go through this proxy, which resolves its name. */
  UPSTREAM_PROXY_URL: proxyUrl.optional(),
  /** Whether connecting a number subscribes our app to the callbacks of its business account. */
  UPSTREAM_SUBSCRIBE_APPS: z
    .enum(['0', '1'])
    .default('1')
    .transform((flag) => flag === '1'),
}

/** The platform's API: where it is, and the connections to it. */
export interface Upstream {
  /** With the version, without a slash at the end. */
  url: string
  agent: Dispatcher
  /** For sends alone: one that waited here for a connection, behind other calls, would end as one whose outcome is unknown. */
  sending: Dispatcher
  /** The address of a path below the version, with the proof for calls with the token. */
  urlOf: (path: string, token: string | null) => string
  appId: string
  subscribesApps: boolean
  /** When the calls under way are over. */
  close: () => Promise<void>
}

/**
 * The headers of every call: who we are, in the platform's form, since the host of its files answers nobody who does not say
 * it; and in whose name we call, null for nobody's.
 */
export const callerHeaders = (token: string | null) => ({
  'user-agent': 'svc-messaging/1.0.0',
  ...(token !== null && { authorization: `Bearer ${token}` }),
})

const connectTimeoutMs = 3_000
/** Answers that we read are some hundred bytes long. */
const maxAnswerBytes = 1024 * 1024
/** Sends in work at a time, in a process. */
export const sendsAtOnce = 320
/** Calls at a time to one host. A send that is in work waits for no other; files have connections of their own. */
const sendConnections = sendsAtOnce + 64
export const otherConnections = 300

type UpstreamEnv = z.output<z.ZodObject<typeof upstreamSettings>>

export function createUpstream(env: UpstreamEnv): Upstream {
  const agent = connectionsOf(env, otherConnections)
  const sending = connectionsOf(env, sendConnections)
  return {
    url: rootOf(env),
    agent,
    sending,
    urlOf: addressing(env),
    appId: env.UPSTREAM_APP_ID,
    subscribesApps: env.UPSTREAM_SUBSCRIBE_APPS,
    async close() {
      await Promise.all([agent.close(), sending.close()])
    },
  }
}

const connectionsOf = (
  { UPSTREAM_KEEPALIVE_MS: keepAliveMs, UPSTREAM_PROXY_URL: proxyUrl }: UpstreamEnv,
  connections: number,
) =>
  connectTo(proxyUrl, {
    connections,
    pipelining: 1,
    keepAliveTimeout: keepAliveMs,
    keepAliveMaxTimeout: keepAliveMs,
    maxResponseSize: maxAnswerBytes,
  })

/** Connections to the platform's hosts, through the proxy if there is one. */
export function connectTo(proxyUrl: string | undefined, options: Agent.Options): Dispatcher {
  if (proxyUrl === undefined) return new Agent({ ...options, connect: { timeout: connectTimeoutMs } })
  return new ProxyAgent({
    ...options,
    uri: proxyUrl,
    allowH2: false,
    connectTimeout: connectTimeoutMs,
    // A proxy that takes the connection and says nothing is one that cannot be reached, too.
    clientFactory: (origin, toProxy: Pool.Options) =>
      new Pool(origin, { ...toProxy, headersTimeout: connectTimeoutMs }),
  })
}

const rootOf = (env: UpstreamEnv) => `${env.UPSTREAM_BASE_URL.replace(/\/$/, '')}/${env.UPSTREAM_API_VERSION}`

function addressing(env: UpstreamEnv) {
  const root = rootOf(env)
  const { UPSTREAM_APP_SECRET: appSecret } = env
  return (path: string, token: string | null) => {
    if (appSecret === undefined || token === null) return `${root}${path}`
    return `${root}${path}${path.includes('?') ? '&' : '?'}appsecret_proof=${proofOf(appSecret, token)}`
  }
}

/** HMAC-SHA256 of the token under the app's secret, in hex (the platform's page on securing Graph API calls). */
const proofOf = (appSecret: string, token: string) => createHmac('sha256', appSecret).update(token).digest('hex')
