import type { IncomingHttpHeaders } from 'node:http'
import { Client, type Dispatcher, Pool } from 'undici'
import { EgressError } from './egress-error.ts'

/** A connection that is never idle is not kept for longer: its host may have got another address, and be answered at the old one still. */
const keptForMs = 60_000

/**
 * A pool that tells when a call met the end of a connection: one that had answered an earlier call, was kept, and ended before a
 * word of this answer. Servers close what was idle without saying so before, and all of it when they are restarted; what is sent in the
 * same moment fails, and says nothing about them. Such a call fails with an `EgressError` that `isOfKept`.
 */
export const poolOf = (
  origin: string | URL,
  options: Pool.Options,
  clientOf: (origin: URL, options: Pool.Options) => TellingClient = (at, given) => new TellingClient(at, given),
): Pool => new Pool(origin, { ...options, clientTtl: keptForMs, factory: clientOf })

/** Has one connection at a time. */
export class TellingClient extends Client {
  /** That the connection of now has had. */
  #calls = 0

  constructor(origin: string | URL, options: Client.Options) {
    super(origin, options)
    this.on('connect', () => {
      this.#calls = 0
    })
  }

  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler) {
    return super.dispatch(options, new TellingHandler(handler, () => this.#calls++ > 0))
  }
}

/** Not undici's `DecoratorHandler` with functions of one's own: every delivery goes through here. */
class TellingHandler implements Dispatcher.DispatchHandler {
  readonly #handler: Dispatcher.DispatchHandler
  readonly #begin: () => boolean
  #isOfKept = false

  /** `begin` notes a call of the connection, and answers whether it had one before. */
  constructor(handler: Dispatcher.DispatchHandler, begin: () => boolean) {
    this.#handler = handler
    this.#begin = begin
  }

  onRequestStart(controller: Dispatcher.DispatchController, context: unknown) {
    this.#isOfKept = this.#begin()
    this.#handler.onRequestStart?.(controller, context)
  }

  onRequestUpgrade(...args: Parameters<NonNullable<Dispatcher.DispatchHandler['onRequestUpgrade']>>) {
    this.#handler.onRequestUpgrade?.(...args)
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
    statusMessage?: string,
  ) {
    this.#isOfKept = false
    this.#handler.onResponseStart?.(controller, status, headers, statusMessage)
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer) {
    this.#handler.onResponseData?.(controller, chunk)
  }

  onResponseEnd(controller: Dispatcher.DispatchController, trailers: IncomingHttpHeaders) {
    this.#handler.onResponseEnd?.(controller, trailers)
  }

  onResponseError(controller: Dispatcher.DispatchController, err: Error) {
    this.#handler.onResponseError?.(controller, this.#isOfKept && hasEnded(err) ? endOfKept(err) : err)
  }
}

/** The peer closed it, or had closed it before; not that what it sent made no sense, or that the call was given up. */
const hasEnded = (err: Error) =>
  'code' in err &&
  (err.code === 'ECONNRESET' ||
    err.code === 'EPIPE' ||
    (err.code === 'UND_ERR_SOCKET' && (err.message === 'other side closed' || err.message === 'closed')))

const endOfKept = (cause: Error) =>
  new EgressError('connection_failed', 'A connection that was kept has ended.', { isOfKept: true, cause })
