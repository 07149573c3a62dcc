import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import type { App } from './app.ts'

/**
 * While this runs connections end with their next answer, new ones still have theirs: whoever asks in the meantime learns
 * that this gateway goes away, instead of finding its connection closed.
 */
const farewellMs = 500
/** For what is running then. What is left of the time to stop is for the steps after this one (shared/service/service.ts). */
const lastAnswersMs = 18_000

/**
 * Ends the HTTP side without a failed request: a farewell, then no new connections, then what is running. To be called before
 * the server listens: while it closes, Node waits for connections that never said anything, and has no time limits any more.
 * The newest of them have as long as a farewell takes to say it.
 */
export function prepareStop(http: FastifyInstance, app: App, { withinMs = lastAnswersMs } = {}): () => Promise<void> {
  const open = new Set<Socket>()
  http.server.on('connection', (socket: Socket) => {
    open.add(socket)
    socket.once('close', () => open.delete(socket))
  })
  return async () => {
    app.beginStop()
    await sleep(farewellMs)
    await untilNothingComes(http.server)
    http.server.close()
    const timers = [
      setTimeout(() => open.forEach((socket) => socket.bytesRead === 0 && socket.destroy()), farewellMs),
      setTimeout(() => http.server.closeAllConnections(), withinMs),
    ]
    await http.close()
    timers.forEach(clearTimeout)
  }
}

/** How long what comes may keep the server from closing. */
const readingMs = 500

/**
 * Until a turn of the event loop has brought nothing: a server that closes now closes no connection on which a request lies unread, as
 * many do in a busy process. Its caller closes it before anything else is read.
 */
async function untilNothingComes(server: Server) {
  const until = performance.now() + readingMs
  let came = true
  const note = () => (came = true)
  server.on('connection', note).on('request', note)
  while (came && performance.now() < until) {
    came = false
    await turn()
  }
  server.off('connection', note).off('request', note)
}
