import type { IncomingHttpHeaders } from 'node:http'
import type { Duplex } from 'node:stream'
import { type buildConnector, DecoratorHandler, type Dispatcher, type Pool } from 'undici'
import { EgressError } from './egress-error.ts'
import { poolOf, TellingClient } from './kept-connections.ts'

/** From the question for a tunnel to the proxy's answer. With the proxy's own connection before it, it is less than a link has. */
const tunnelTimeoutMs = 3_500
/** Who is asked so long before the proxy's last word may have been passed over by it. */
const slowMs = 1_000

/** What the proxy was last heard to do. */
interface Heard {
  /** Monotonic. */
  at: number
  /** Hosts to which it has not led since. */
  silentFor: Set<string>
}

/**
 * Connections to a proxy, whose own faults are held against nobody's address: it is away, hangs up, speaks no HTTP, does not take our
 * name and password, or says nothing for two hosts and more, and nothing else meanwhile. What it says of a host is that host's.
 */
export function createProxyPools(): (origin: string | URL, options: Pool.Options) => Pool {
  const heard: Heard = { at: -Infinity, silentFor: new Set() }
  return (origin, options) =>
    poolOf(origin, { ...options, connect: reaching(options.connect) }, (at, given) => new ProxyClient(at, given, heard))
}

const ourFault = (message: string, cause?: unknown) =>
  new EgressError('connection_failed', message, { isOurs: true, cause })

const reaching =
  (connect: Pool.Options['connect']): buildConnector.connector =>
  (options, callback) => {
    if (typeof connect !== 'function') throw new TypeError('a proxy without a connector')
    connect(options, (...[err, socket]) => {
      if (err) callback(ourFault('The proxy is away.', err), null)
      else callback(null, socket)
    })
  }

class ProxyClient extends TellingClient {
  readonly #heard: Heard

  constructor(origin: string | URL, options: Pool.Options, heard: Heard) {
    super(origin, options)
    this.#heard = heard
  }

  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler) {
    if (options.method !== 'CONNECT') return super.dispatch(options, new AnswerHandler(handler, this.#heard))
    const tunnel = new TunnelHandler(handler, this.#heard, options.path)
    return super.dispatch({ ...options, headersTimeout: tunnelTimeoutMs }, tunnel)
  }
}

const refusesUs = () => ourFault('The proxy does not take our name and password (407).')

function hear(heard: Heard) {
  heard.at = performance.now()
  heard.silentFor.clear()
}

class HearingHandler extends DecoratorHandler {
  protected readonly handler: Dispatcher.DispatchHandler
  protected readonly heard: Heard

  constructor(handler: Dispatcher.DispatchHandler, heard: Heard) {
    super(handler)
    this.handler = handler
    this.heard = heard
  }
}

/** What is not tunnelled. */
class AnswerHandler extends HearingHandler {
  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
    statusMessage?: string,
  ) {
    hear(this.heard)
    if (status === 407) controller.abort(refusesUs())
    else this.handler.onResponseStart?.(controller, status, headers, statusMessage)
  }
}

/** Until there is a tunnel nobody but the proxy speaks. */
class TunnelHandler extends HearingHandler {
  readonly #host: string
  readonly #askedAt = performance.now()

  constructor(handler: Dispatcher.DispatchHandler, heard: Heard, host: string) {
    super(handler, heard)
    this.#host = host
  }

  onRequestUpgrade(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
    socket: Duplex,
  ) {
    hear(this.heard)
    if (status !== 407) return this.handler.onRequestUpgrade?.(controller, status, headers, socket)
    socket.on('error', () => {}).destroy()
    this.handler.onResponseError?.(controller, refusesUs())
  }

  onResponseError(controller: Dispatcher.DispatchController, err: Error) {
    this.handler.onResponseError?.(controller, this.#nameOf(err))
  }

  #nameOf(err: Error): Error {
    if (err instanceof EgressError) return err
    if (!('code' in err && err.code === 'UND_ERR_HEADERS_TIMEOUT'))
      return ourFault('The proxy ended the connection, or does not speak HTTP.', err)
    const { at, silentFor } = this.heard
    if (at - this.#askedAt > slowMs) return err
    silentFor.add(this.#host)
    return silentFor.size === 1 ? err : new EgressError('timeout', 'The proxy is silent.', { isOurs: true, cause: err })
  }
}
