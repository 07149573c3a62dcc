import { Readable } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import type { App } from '../app.ts'
import { parseBody } from './parse.ts'

const Body = z.strictObject({
  /** Any type: people send what they like. */
  mime_type: z.string().regex(/^[\w.+-]+\/[\w.+-]+(;.*)?$/, 'must be a media type'),
  data: z.base64(),
  filename: z.string().min(1).optional(),
})

/** A file of 100 MB, in base64. */
const bodyLimitBytes = 140 * 1024 * 1024

/** A file of a person, for the media block of an inbound message: every number may read it, for 7 days. */
export function controlMedia({ files, media, dataFile }: App, http: FastifyInstance) {
  http.post('/control/media', { bodyLimit: bodyLimitBytes }, async (request) => {
    const { mime_type: mimeType, data, filename } = parseBody(Body, request.body)
    const incoming = await files.receive(Readable.from([Buffer.from(data, 'base64')]))
    const medium = await media.add(incoming, { phoneNumberId: null, mimeType, filename })
    await dataFile.save()
    return { id: medium.id, mime_type: mimeType, sha256: medium.sha256 }
  })
}
