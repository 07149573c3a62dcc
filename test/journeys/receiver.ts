import { createServer, type ServerResponse } from 'node:http'
import { listen } from '../listen.ts'
import { wholeBody } from '../whole-body.ts'
import type { Json } from './client.ts'

export interface Delivery {
  headers: Record<string, string>
  /** The bytes, as they are signed. */
  raw: string
  body: Json
  at: number
}

type Respond = (response: ServerResponse, delivery: Delivery) => void

export interface Receiver {
  url: string
  deliveries: Delivery[]
  of: (type: string) => Delivery[]
  /** Answers differently from now on; 200 at first. */
  respondWith: (respond: Respond) => void
  close: () => void
}

/** A subscriber's endpoint that remembers what it got. */
export async function startReceiver(): Promise<Receiver> {
  const deliveries: Delivery[] = []
  let respond: Respond = (response) => response.end('ok')
  const server = createServer((request, response) => {
    void wholeBody(request).then((body) => {
      const raw = body.toString()
      const headers = request.headers as Record<string, string>
      const delivery = { headers, raw, body: JSON.parse(raw) as Json, at: Date.now() }
      deliveries.push(delivery)
      respond(response, delivery)
    })
  })
  const port = await listen(server)
  return {
    url: `http://127.0.0.1:${port}/hook`,
    deliveries,
    of: (type) => deliveries.filter(({ headers }) => headers['x-svc-event'] === type),
    respondWith: (next) => {
      respond = next
    },
    close: () => server.close().closeAllConnections(),
  }
}
