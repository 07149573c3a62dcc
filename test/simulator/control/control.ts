import type { FastifyInstance } from 'fastify'
import type { App } from '../app.ts'
import { controlCallbacks } from './callbacks.ts'
import { controlFaults } from './faults.ts'
import { controlInbound } from './inbound.ts'
import { controlMedia } from './media.ts'
import { controlNumbers } from './numbers.ts'
import { BadField } from './parse.ts'
import { controlSent } from './sent.ts'
import { controlSettings } from './settings.ts'
import { controlTemplates } from './templates.ts'

/** The simulator's own API, under `/control`: a file per noun. Bodies stay bytes until a schema reads them. */
export function serveControl(app: App, http: FastifyInstance) {
  http.removeAllContentTypeParsers()
  http.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, bytes, done) => done(null, bytes))
  http.setErrorHandler((err, _request, reply) => {
    if (!(err instanceof BadField)) throw err
    return reply.code(400).send({ error: { field: err.field, message: err.message } })
  })

  controlNumbers(app, http)
  controlInbound(app, http)
  controlMedia(app, http)
  controlSent(app, http)
  controlFaults(app, http)
  controlCallbacks(app, http)
  controlSettings(app, http)
  controlTemplates(app, http)
}
