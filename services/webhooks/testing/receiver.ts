import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import { listen } from '@app/test/listen.ts'
import { wholeBody } from '@app/test/whole-body.ts'

/** A request that a receiver got. */
interface Received {
  headers: IncomingHttpHeaders
  body: Buffer
  at: number
}

export type Respond = (response: ServerResponse, received: Received, n: number) => void

export interface Receiver {
  url: string
  got: Received[]
  /** How it answers from now on; 200 `ok` at first. */
  respondWith: (respond: Respond) => void
  close: () => Promise<void>
}

export const answer =
  (status: number, headers: Record<string, string> = {}, body = ''): Respond =>
  (response) =>
    void response.writeHead(status, headers).end(body)

export async function startReceiver(): Promise<Receiver> {
  const got: Received[] = []
  let respond = answer(200, {}, 'ok')
  const server = createServer((request, response) => {
    void wholeBody(request).then((body) => {
      const received = { headers: request.headers, body, at: performance.now() }
      respond(response, received, got.push(received))
    })
  })
  return {
    url: `http://127.0.0.1:${await listen(server)}/hook`,
    got,
    respondWith(next) {
      respond = next
    },
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
