import type { Readable } from 'node:stream'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { App } from '../app.ts'
import { uploadMedia } from '../media/upload-media.ts'
import { openUpload, readUpload, receiveUpload } from '../uploads/resumable-upload.ts'
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
    const caller = authenticate(app, request)
    const number = ownNumber(app, caller, request.params.id, 'post')
    const { headers, query, body = request.raw } = request
    return uploadMedia(app, number, { headers, query, body })
  })
  http.post<UploadRoute>('/:version/:id/uploads', (request) => {
    versionOf(request)
    authenticate(app, request)
    return openUpload(app, request.params.id, request.query)
  })
  // Two colons are one that is meant: `upload:` and then the id.
  http.post<UploadRoute>('/:version/upload:::id', (request) => {
    versionOf(request)
    authenticate(app, request)
    const { file_offset: offset } = request.headers
    return receiveUpload(app, sessionOf(request), offset, request.body ?? request.raw)
  })
  http.get<UploadRoute>('/:version/upload:::id', (request) => {
    versionOf(request)
    authenticate(app, request)
    return readUpload(app, sessionOf(request))
  })
  http.get<UploadRoute>('/samples/:id', async (request, reply) => {
    const sample = app.uploads.sampleOf(request.params.id)
    return sample ? reply.type(sample.fileType).send(await app.files.read(sample.name)) : reply.code(404).send()
  })
}

/** The id of a session, as it was answered. */
const sessionOf = ({ params: { id }, query: { sig = '' } }: FastifyRequest<UploadRoute>) => `upload:${id}?sig=${sig}`
