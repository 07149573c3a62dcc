import { createServer } from 'node:http'
import { listen } from '../../listen.ts'
import { wholeBody } from '../../whole-body.ts'
import type { History } from '../history/history.ts'

export type Subscriber = Awaited<ReturnType<typeof startSubscriber>>

/** The endpoints of all subscriptions: the last part of the path is the subscription's name. */
export async function startSubscriber(history: History) {
  const trouble = { failing: new Set<string>(), delayMs: 0 }
  const server = createServer((request, response) => {
    void wholeBody(request).then((body) => {
      const subscription = request.url?.split('/').at(-1) ?? ''
      const { 'x-svc-event': type, 'x-svc-event-id': eventId, 'x-svc-delivery-id': id } = request.headers
      const raw = body.toString()
      // One that is about to fail has seen it all the same.
      history.deliveries.push({ subscription, id: String(id), type: String(type), eventId: String(eventId), raw })
      const status = trouble.failing.has(subscription) ? 500 : 200
      setTimeout(() => response.writeHead(status).end(), trouble.delayMs)
    })
  })
  const port = await listen(server)
  return {
    urlOf: (name: string) => `http://127.0.0.1:${port}/${name}`,
    trouble,
    close: () => server.close().closeAllConnections(),
  }
}
