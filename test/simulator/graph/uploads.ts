import type { Readable } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import type { App } from '../app.ts'
import { uploadMedia } from '../media/upload-media.ts'
import { authenticate, ownNumber } from './authenticate.ts'
import { versionOf } from './graph-request.ts'

interface UploadRoute {
  Params: { version: string; id: string }
  Body: Readable | undefined
  Querystring: Partial<Record<string, string>>
}

/** The routes whose bodies are files: they come as streams. */
export function serveUploads(app: App, http: FastifyInstance) {
  http.removeAllContentTypeParsers()
  http.addContentTypeParser('*', (_request, body, done) => done(null, body))

  http.post<UploadRoute>('/:version/:id/media', (request) => {
    versionOf(request)
    const caller = authenticate(app, request.headers.authorization)
    const number = ownNumber(app, caller, request.params.id, 'post')
    return uploadMedia(app, number, request.headers, request.body ?? request.raw)
  })
}
