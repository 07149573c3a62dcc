import { isIP } from 'node:net'
import { NatsError } from 'nats'
import { z } from 'zod'
import { inOurWords } from '../api/fault-words.ts'
import { isLogin } from '../bus/login.ts'

/** Keys by id, written `id:base64,id:base64`; the first seals and signs, all open and verify. */
export interface KeyRing {
  current: string
  byId: ReadonlyMap<string, Buffer>
}

/** A key ring in the environment: `k2:<32 bytes in base64>,k1:<…>`. */
export const keyRing = z.string().transform((text, context): KeyRing => {
  const entries = text.split(',').map((entry) => {
    const [id = '', key = ''] = entry.trim().split(':')
    return [id, Buffer.from(key, 'base64')] as const
  })
  const [first] = entries
  if (!first || entries.some(([id, key]) => id === '' || key.length !== 32)) {
    context.addIssue('must be id:base64 pairs, separated by commas, with 32 bytes in each key')
    return z.NEVER
  }
  const byId = new Map(entries)
  // Of two keys with one id, one would be forgotten, and with it what it has sealed.
  if (byId.size < entries.length) {
    context.addIssue('must have a different id for each key')
    return z.NEVER
  }
  return { current: first[0], byId }
})

/**
 * Keys that seal: their ids stand before the first dot of what they have sealed (shared/secrets/seal.ts). Nothing that one with a
 * dot has sealed could be opened again.
 */
export const sealKeyRing = keyRing.refine(
  ({ byId }) => byId.keys().every((id) => !id.includes('.')),
  'must have ids without a dot, such as k1 or 2026-01',
)

/** `host:port` alone would be taken for a URL, too, of a scheme `host:` that nobody speaks. */
export const httpUrl = z.url({ protocol: /^https?$/, error: 'must be a URL that begins with http:// or https://' })

/** Where the world reaches the gateway, perhaps below a path that a proxy takes away; without a slash at the end. */
export const publicUrl = httpUrl.transform((text) => {
  const { origin, pathname } = new URL(text)
  return origin + pathname.replace(/\/+$/, '')
})

/** Origins, separated by commas. */
export const origins = z
  .string()
  .refine(
    (text) => text.split(',').every((url) => httpUrl.safeParse(url.trim()).success),
    'must be origins such as https://chat.example, separated by commas',
  )
  .transform((text) => text.split(',').map((url) => new URL(url.trim()).origin))

/** Of the platform's API. */
export const apiVersion = z
  .string()
  .regex(/^v\d+\.\d+$/, 'must be a version, such as v23.0')
  .default('v23.0')

/** Of our app at the platform. */
export const appId = z.string().regex(/^\d+$/, 'must be digits, the id of the app')

/** A proxy for calls out. */
export const proxyUrl = z.url({
  protocol: /^(https?|socks5?)$/,
  error: 'must be the URL of a proxy, such as http://proxy.example:3128',
})

const natsUrls = z
  .string()
  .refine(
    (text) => text.split(',').every((url) => isNatsUrl(url.trim())),
    'must be nats-servers, separated by commas, such as nats://127.0.0.1:4222, without user and password: NATS_NKEY_SEED is the login',
  )

/** The client leaves out who is named before the host, and takes the digits of a password for the port. */
function isNatsUrl(text: string) {
  const host = text.replace(/^(nats|tls):\/\//, '')
  return host !== '' && !/:\/\/|@/.test(host) && (isIP(host) !== 0 || URL.canParse(`nats://${host}`))
}

const common = {
  NATS_URL: natsUrls,
  /** The secret of the service's own user at the nats-server (bus/login.ts); without it the service logs in as nobody. */
  NATS_NKEY_SEED: z
    .string()
    .refine(isLogin, 'must be the nkey seed of a user (SU…), or the text of its file of credentials')
    .optional(),
  LOG_LEVEL: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'silent']).default('info'),
  /** Port of /livez, /readyz and /metrics; 0 takes a free one. */
  PROBE_PORT: z.coerce.number().int().min(0).max(65_535).default(0),
  PROBE_HOST: z.string().default('127.0.0.1'),
  /** Copies of the event stream: 3 in a cluster of three nats-servers. */
  NATS_REPLICAS: z.coerce.number().int().min(1).max(5).default(1),
  /** Where traces go (OTLP over HTTP), such as `http://localhost:4318`; without it none are made. */
  OTEL_EXPORTER_OTLP_ENDPOINT: httpUrl.optional(),
  /** The share of requests that are traced, of those whose client does not ask for none (W3C `traceparent`, not sampled). */
  OTEL_TRACES_SAMPLER_ARG: z.coerce.number().min(0).max(1).default(1),
}

export interface CommonEnv {
  NATS_URL: string
  NATS_NKEY_SEED?: string | undefined
  LOG_LEVEL: string
  PROBE_PORT: number
  PROBE_HOST: string
  NATS_REPLICAS: number
  OTEL_EXPORTER_OTLP_ENDPOINT?: string | undefined
  OTEL_TRACES_SAMPLER_ARG?: number
}

/**
 * Reads and checks the settings of the environment once, before any connection; nothing else reads process.env. When some are
 * wrong it ends the process with exit code 78 and one line for each, which names it. `faultOf` answers what is wrong with
 * settings that are each valid but do not go together, or null.
 */
export function readEnv<S extends z.ZodRawShape>(
  shape: S,
  faultOf: (env: z.output<z.ZodObject<S>>) => string | null = () => null,
) {
  // A line of an environment file with nothing but blanks behind the `=` sets nothing; as a number they would be 0.
  const given = Object.fromEntries(Object.entries(process.env).filter(([, value]) => value?.trim() !== ''))
  const result = z.object({ ...common, ...shape }).safeParse(given, inOurWords)
  if (!result.success) return refuse(result.error.issues.map((issue) => sentenceOf(issue, given)).join('\n'))
  const fault = faultOf(result.data as z.output<z.ZodObject<S>>)
  return fault === null ? result.data : refuse(`✖ ${fault}`)
}

/** `NAME must be …`. A setting that is not set is required, whatever else its schema says about it. */
function sentenceOf({ path, message }: z.core.$ZodIssue, given: object) {
  return `✖ ${path.join('.')} ${String(path[0]) in given ? message : 'is required'}`
}

/**
 * Waits until a server listens at the address of these settings. When that fails, since the port is taken or the address is not of
 * this machine, it ends the process as `readEnv` does.
 */
export async function listening<T>(settings: string, trying: Promise<T>): Promise<T> {
  try {
    return await trying
  } catch (err) {
    if (!(err instanceof Error && 'syscall' in err)) throw err
    return refuse(`✖ cannot listen at the address of ${settings}: ${err.message}`)
  }
}

/** Waits for the first connection to nats-server. When that refuses the login, it ends the process as `readEnv` does. */
export async function admitted<T>(user: string, connecting: Promise<T>): Promise<T> {
  try {
    return await connecting
  } catch (err) {
    if (!(err instanceof NatsError && err.isAuthError())) throw err
    return refuse(
      `✖ NATS_NKEY_SEED must be the seed of the user "${user}", or credentials that hold: nats-server refuses the login`,
    )
  }
}

function refuse(what: string): never {
  process.stderr.write(`Wrong settings in the environment:\n${what}\n`)
  return process.exit(78)
}
