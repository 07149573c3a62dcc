import type { FastifyInstance } from 'fastify'
import type { App } from '../app.ts'
import { bearerOf } from '../graph/authenticate.ts'

interface Route {
  Querystring: Partial<Record<string, string>>
}

/** Serves the bytes of a file where `readMedia` said: for a while, and to a bearer alone. Everything else is a 400, 401 or 404. */
export function serveDownloads(app: App, http: FastifyInstance) {
  http.get<Route>('/whatsapp_business/attachments/', async (request, reply) => {
    // Without a word of who asks there is no file, whatever the bearer.
    if (request.headers['user-agent'] === undefined)
      return reply.code(400).type('text/html').send('<h1>Sorry, something went wrong.</h1>')
    const { number } = bearerOf(app, request)
    const medium = app.media.ofPath(request.query)
    if (!medium || (medium.phoneNumberId !== null && medium.phoneNumberId !== number.phoneNumberId))
      return reply.code(404).send()
    const name = (medium.filename ?? medium.id).replaceAll(/[^\w.-]/g, '_')
    return reply
      .type(medium.mimeType)
      .header('content-length', medium.size)
      .header('content-disposition', `attachment; filename="${name}"`)
      .send(await app.files.read(medium.id))
  })
}
