import type { LookupAddress } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import { Agent, buildConnector, DecoratorHandler, type Dispatcher, ProxyAgent } from 'undici'
import { z } from 'zod'
import { isPublicUnicast, type Networks, parseNetworks } from './addresses.ts'
import { EgressError } from './egress-error.ts'
import { poolOf } from './kept-connections.ts'
import { Problem } from '../api/problem.ts'
import { createProxyPools } from './proxy-pool.ts'
import { createResolve, type Resolve } from './resolve.ts'
import { proxyUrl } from '../service/environment.ts'
import { uriOf, urlIn } from '../values/web-address.ts'

/** DNS, TCP and TLS together. */
const connectTimeoutMs = 5_000
/** Under what common servers allow an idle connection (gunicorn 2 s); a longer time that the peer itself tells is used. */
const keepAliveMs = 1_500
/** How long a check waits for a name; one that does not resolve yet is accepted. */
const checkTimeoutMs = 2_000
/** Answers before the answer, such as 103: as many as Go's own client bears. */
const mostEarlyAnswers = 5

/** The settings of the way out in the environment. */
export const egressSettings = {
  /** Networks that may be called although they are not public, such as `10.1.0.0/16,127.0.0.1`. */
  EGRESS_ALLOW_CIDRS: z.string().default('').superRefine(refuseOthers),
  EGRESS_PROXY_URL: proxyUrl.optional(),
}

function refuseOthers(networks: string, context: z.RefinementCtx) {
  try {
    parseNetworks(networks)
  } catch (err) {
    context.addIssue(err instanceof Error ? err.message : String(err))
  }
}

export interface EgressOptions {
  /** `EGRESS_ALLOW_CIDRS`: networks that may be reached although they are not public, with plain http too. */
  allowCidrs: string
  /** `EGRESS_PROXY_URL`: all connections are made through it, and it resolves the names. */
  proxyUrl?: string | undefined
  resolve?: Resolve
}

/** The only way out to addresses that users give. */
export interface Egress {
  /** The URL as a URI. Throws `invalid_field_value` for a URL that we would not call: what is wrong with its text, or one sentence for every host that is not public. */
  checkUrl: (url: string, param?: string) => Promise<string>
  /** For undici's `request` and `dispatch`. What it refuses, and what fails, `failureOf` names (egress-error.ts). */
  dispatcher: Dispatcher
  close: () => Promise<void>
}

type Protocol = 'http:' | 'https:'

/**
 * Every connection is checked where it is made: the name is resolved once, one address that is not allowed refuses them
 * all, the socket goes to one of those, and its peer is checked again. Redirects are not followed by undici unless asked.
 */
export function createEgress({ allowCidrs, proxyUrl, resolve = createResolve() }: EgressOptions): Egress {
  const networks = parseNetworks(allowCidrs)
  const guarded = proxyUrl ? throughProxy(networks, proxyUrl) : directly(networks, resolve)
  const dispatcher = guarded.compose(refuseManyEarly)
  return {
    async checkUrl(url, param = 'url') {
      const fault = faultOf(url) ?? ((await leadsOutside(networks, resolve, new URL(url))) ? null : notPublic)
      if (fault !== null) throw new Problem('invalid_field_value', { param, message: `${param} ${fault}` })
      return uriOf(url)
    },
    dispatcher,
    close: () => dispatcher.close(),
  }
}

/** Behind what a client gave: why it is not called. */
export const notPublic =
  'must be https and lead to a public address. The operator of the service can allow other networks in EGRESS_ALLOW_CIDRS, but no name such as localhost: write its address.'

/** What is wrong with the text of a URL, whatever the network is like. */
function faultOf(text: string): string | null {
  const url = urlIn(text)
  if (!url) return 'must be an absolute URL.'
  if (/[\s\p{Cc}\\]/u.test(text)) return 'must not hold spaces, controls or backslashes: write a space as %20.'
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return 'must begin with https://.'
  if (url.username !== '' || url.password !== '') return 'must not hold a user name or a password.'
  return null
}

/** A name is asked for now too, so that its owner hears of it at once; the connection decides. */
async function leadsOutside(networks: Networks, resolve: Resolve, { protocol, hostname }: URL) {
  const host = hostOf(hostname)
  if (!mayName(networks, protocol as Protocol, host)) return false
  if (isIP(host)) return true
  const addresses = await soon(resolve(host), checkTimeoutMs)
  return addresses.every((address) => isAllowed(networks, protocol as Protocol, address))
}

async function soon(answer: Promise<string[]>, timeoutMs: number): Promise<string[]> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<string[]>((done) => {
    timer = setTimeout(done, timeoutMs, [])
  })
  return Promise.race([answer.catch(() => []), late]).finally(() => clearTimeout(timer))
}

/**
 * The host as WHATWG parsing leaves it, without brackets and the root's dot. Nor with several: `127.0.0.1..` is parsed as a name,
 * which a proxy may take for the address.
 */
const hostOf = (hostname: string) => hostname.replace(/^\[|\]$/g, '').replace(/\.+$/, '')

const isAllowed = (networks: Networks, protocol: Protocol, address: string) =>
  networks.has(address) || (protocol === 'https:' && isPublicUnicast(address))

/** Whether a host may stand in a URL, before any name is resolved. */
function mayName(networks: Networks, protocol: Protocol, host: string) {
  if (isIP(host)) return isAllowed(networks, protocol, host)
  if (!host.includes('.') || /\.(local|internal|localhost)$/.test(host)) return false
  return protocol === 'https:' || !networks.isEmpty
}

/**
 * An address may send them until the time is up, and each costs as much as an answer: 300 connections that brought 54 MB of them
 * a second left the process no time for anybody else.
 */
const refuseManyEarly: Dispatcher.DispatcherComposeInterceptor = (dispatch) => (options, handler) => {
  const counting: Dispatcher.DispatchHandler = new DecoratorHandler(handler)
  let early = 0
  counting.onResponseStart = (controller, status, ...rest) => {
    if (status < 200 && ++early > mostEarlyAnswers)
      return controller.abort(new EgressError('invalid_response', 'it sends too many answers before its answer'))
    handler.onResponseStart?.(controller, status, ...rest)
  }
  return dispatch(options, counting)
}

function directly(networks: Networks, resolve: Resolve) {
  const connectors = {
    'https:': connector(networks, resolve, 'https:'),
    'http:': connector(networks, resolve, 'http:'),
  }
  return new Agent({
    allowH2: false,
    keepAliveTimeout: keepAliveMs,
    keepAliveMaxTimeout: 30_000,
    factory: poolOf,
    connect: (options, callback) => connectors[options.protocol as Protocol](options, callback),
  })
}

function connector(networks: Networks, resolve: Resolve, protocol: Protocol): buildConnector.connector {
  const connect = buildConnector({
    allowH2: false,
    timeout: connectTimeoutMs,
    lookup: vettedLookup(networks, resolve, protocol),
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: 1_000,
  })
  return (options, callback) => {
    // Node asks no lookup for a literal address.
    const host = hostOf(options.hostname)
    if (!mayName(networks, protocol, host)) return callback(blocked(), null)
    // The URL's host, never what a Host header says. An address is no name.
    connect({ ...options, servername: isIP(host) ? '' : host }, (...[err, socket]) => {
      if (err) return callback(err, null)
      if (isAllowed(networks, protocol, socket.remoteAddress ?? '')) return callback(null, socket)
      socket.destroy()
      callback(blocked(), null)
    })
  }
}

const blocked = () => new EgressError('blocked_address', 'The address is not allowed.')

const vettedLookup =
  (networks: Networks, resolve: Resolve, protocol: Protocol): LookupFunction =>
  (name, { all }, callback) =>
    void answer(vetted(networks, resolve, protocol, hostOf(name)), all === true, callback)

async function answer(asked: Promise<Vetted>, all: boolean, callback: Parameters<LookupFunction>[2]) {
  try {
    const addresses = await asked
    if (all) callback(null, addresses)
    else callback(null, addresses[0].address, addresses[0].family)
  } catch (err) {
    callback(err as NodeJS.ErrnoException, [])
  }
}

type Vetted = [LookupAddress, ...LookupAddress[]]

async function vetted(networks: Networks, resolve: Resolve, protocol: Protocol, name: string): Promise<Vetted> {
  const addresses = await resolve(name)
  if (!addresses.every((address) => isAllowed(networks, protocol, address))) throw blocked()
  const [first, ...rest] = addresses.map((address) => ({ address, family: isIP(address) }))
  if (!first) throw new EgressError('dns_error', 'The name has no address.')
  return [first, ...rest]
}

/** The proxy resolves names and decides on them; what can be told from the URL is refused here. */
function throughProxy(networks: Networks, proxyUrl: string) {
  const toProxy = createProxyPools()
  const proxy = new URL(proxyUrl)
  const agent = new ProxyAgent({
    uri: proxyUrl,
    allowH2: false,
    connectTimeout: connectTimeoutMs,
    clientFactory: toProxy,
    // What is not tunnelled is asked of the proxy itself.
    factory: (origin, options) => (String(origin) === proxy.href ? toProxy(origin, options) : poolOf(origin, options)),
  })
  return agent.compose((dispatch) => (options, handler) => {
    const { protocol, hostname } = new URL(String(options.origin))
    if (!mayName(networks, protocol as Protocol, hostOf(hostname))) throw blocked()
    return dispatch(options, handler)
  })
}
