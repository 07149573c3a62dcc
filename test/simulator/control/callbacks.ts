import type { FastifyInstance } from 'fastify'
import type { App } from '../app.ts'
import { BadField } from './parse.ts'

/** Sends any callback, and tells how callbacks fare. */
export function controlCallbacks({ callbacks, schedule, handshake }: App, http: FastifyInstance) {
  const counts = () => ({ scheduled: schedule.waiting(), ...callbacks.counts(), verified: handshake.verified })
  http.get('/control/callbacks', counts)
  http.post('/control/callbacks', (request, reply) => {
    if (!Buffer.isBuffer(request.body)) throw new BadField('body', 'A callback needs a body.')
    if (!callbacks.pushBytes(request.body))
      return reply.code(503).send({ error: { message: 'Too many callbacks wait.' } })
    return counts()
  })
}
