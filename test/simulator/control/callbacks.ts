import type { FastifyInstance } from 'fastify'
import type { App } from '../app.ts'
import { isFields } from '../graph/params.ts'
import { sendKind } from '../kinds/kinds.ts'
import { BadField } from './parse.ts'

/** Sends a callback of a kind, or any bytes, and tells how callbacks fare. */
export function controlCallbacks(app: App, http: FastifyInstance) {
  const { callbacks, schedule, handshake } = app
  const counts = () => ({ scheduled: schedule.waiting(), ...callbacks.counts(), verified: handshake.verified })
  http.get('/control/callbacks', counts)
  http.post('/control/callbacks', (request, reply) => {
    if (!Buffer.isBuffer(request.body)) throw new BadField('body', 'A callback needs a body.')
    const asked = kindOf(request.body)
    if (asked) return { ...counts(), ...sendKind(app, asked) }
    if (!callbacks.pushBytes(request.body))
      return reply.code(503).send({ error: { message: 'Too many callbacks wait.' } })
    return counts()
  })
}

/** A body with a `kind` asks for that one; everything else is a callback itself, byte for byte. */
function kindOf(bytes: Buffer) {
  try {
    const body: unknown = JSON.parse(bytes.toString())
    return isFields(body) && 'kind' in body && !('entry' in body) ? body : undefined
  } catch {
    return undefined
  }
}
