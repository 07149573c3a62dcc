import type { ServerResponse } from 'node:http'
import { leave } from './leave.ts'
import { bodyTimeoutMs, hasBody } from './read-body.ts'

/**
 * Writes the whole answer of a request, of which the body may still be on its way. Then the connection is for no other request:
 * HAProxy 2.6 writes the next one, of anybody, where the rest of that body is awaited. And it ends only when nobody writes into it
 * any more: one that ends before is a failure to a proxy, which then answers 502 instead.
 */
export function respond(
  response: ServerResponse,
  status: number,
  headers: string[],
  body: Uint8Array | string,
  encoding: BufferEncoding = 'utf8',
): void {
  const { req: request } = response
  if (request.complete || !hasBody(request)) return leave(response.writeHead(status, headers), body, encoding)
  // What is left is read, and thrown away.
  request.resume()
  // A body that came together with its head is read a moment later.
  setImmediate(() => {
    // From a client that has gone nothing comes any more.
    if (request.complete || request.destroyed) return leave(response.writeHead(status, headers), body, encoding)
    const closing = headers.includes('Connection') ? headers : [...headers, 'Connection', 'close']
    response.writeHead(status, closing).write(body, encoding)
    response.flushHeaders()
    endAfterBody(response)
  })
}

/** As nginx's `lingering_timeout`: the longest wait for the next byte; `bodyTimeoutMs` is the longest for the whole body. */
const silenceMs = 5_000

function endAfterBody(response: ServerResponse) {
  const { req: request } = response
  const timers = [bodyTimeoutMs, silenceMs].map((ms) => setTimeout(() => request.destroy(), ms))
  request.on('data', () => timers[1]?.refresh())
  request.once('end', () => response.end())
  request.once('close', () => timers.forEach(clearTimeout))
}
