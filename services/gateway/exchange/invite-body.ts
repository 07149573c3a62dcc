import type { IncomingMessage, Server, ServerResponse } from 'node:http'

/** Answers of requests whose clients wait to be told to send the body. */
const waiting = new WeakMap<IncomingMessage, ServerResponse>()

/**
 * A client that asks whether it should send its body (`Expect: 100-continue`, RFC 9110, section 10.1.1; curl does so for large ones) is told
 * when somebody wants to read it: an upload whose key, number or length is refused stays where it is. Node would say so to all.
 */
export function heedExpectations(server: Server): void {
  server.on('checkContinue', (request, response) => {
    waiting.set(request, response)
    server.emit('request', request, response)
  })
  // An expectation that nobody knows is ignored: Node's own refusal has no envelope.
  server.on('checkExpectation', (request, response) => server.emit('request', request, response))
}

/** To be called by whoever reads a body, before that. */
export function inviteBody(request: IncomingMessage): void {
  waiting.get(request)?.writeContinue()
  waiting.delete(request)
}
