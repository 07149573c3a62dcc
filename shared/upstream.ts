import { Agent } from 'undici'
import { z } from 'zod'

/** The platform's settings in the environment. */
export const upstreamSettings = {
  UPSTREAM_BASE_URL: z.url().default('https://graph.facebook.com'),
  UPSTREAM_API_VERSION: z
    .string()
    .regex(/^v\d+\.\d+$/)
    .default('v23.0'),
  /** Our app's id at the platform, under which samples of template headers are uploaded. */
  UPSTREAM_APP_ID: z.string().regex(/^\d+$/),
  /**
   * How long an idle connection is kept; shorter than the platform keeps it, since a request into a socket that the other
   * side is just closing has an unknown outcome. Measured with the same time on both sides: 37 of 150.
   */
  UPSTREAM_KEEPALIVE_MS: z.coerce.number().int().min(1).default(1_000),
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
  agent: Agent
  appId: string
  subscribesApps: boolean
}

const connectTimeoutMs = 3_000
/** Answers that we read are some hundred bytes long. */
const maxAnswerBytes = 1024 * 1024
/** Calls at a time to one host: the sends in work (256) and some. */
const maxConnections = 300

export const createUpstream = (env: z.output<z.ZodObject<typeof upstreamSettings>>): Upstream => ({
  url: `${env.UPSTREAM_BASE_URL.replace(/\/$/, '')}/${env.UPSTREAM_API_VERSION}`,
  agent: new Agent({
    connect: { timeout: connectTimeoutMs },
    connections: maxConnections,
    pipelining: 1,
    keepAliveTimeout: env.UPSTREAM_KEEPALIVE_MS,
    keepAliveMaxTimeout: env.UPSTREAM_KEEPALIVE_MS,
    maxResponseSize: maxAnswerBytes,
  }),
  appId: env.UPSTREAM_APP_ID,
  subscribesApps: env.UPSTREAM_SUBSCRIBE_APPS,
})
