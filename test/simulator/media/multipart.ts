import type { IncomingHttpHeaders } from 'node:http'
import { finished } from 'node:stream/promises'
import type { Readable } from 'node:stream'
import { Busboy } from '@fastify/busboy'
import { badParameter } from '../graph/graph-error.ts'
import type { Fields } from '../graph/params.ts'
import type { Files, Incoming } from './files.ts'
import { largestFileBytes } from './media-types.ts'

export interface ReceivedFile {
  incoming: Incoming
  mimeType: string
  filename: string
  /** Larger than any may be: the rest was not kept. */
  isTooLarge: boolean
}

interface ReceivedForm {
  fields: Fields
  file: ReceivedFile | undefined
}

/**
 * Reads a form, its part `file` into the folder. Other files are dropped.
 * @throws 100 for what is not a whole form
 */
export async function receiveForm(files: Files, headers: IncomingHttpHeaders, body: Readable): Promise<ReceivedForm> {
  const { 'content-type': contentType = '' } = headers
  if (!/^multipart\/form-data;.*boundary=/i.test(contentType))
    throw badParameter('The request must be multipart/form-data.')
  const form = new Busboy({
    headers: { ...headers, 'content-type': contentType },
    limits: { fileSize: largestFileBytes, files: 5, fields: 20, fieldSize: 10_000 },
  })
  const fields: Fields = {}
  let arriving: Promise<ReceivedFile> | undefined
  let opened: Readable | undefined
  form.on('field', (name, value) => {
    fields[name] = value
  })
  form.on('file', (name, stream, filename, _encoding, mimeType) => {
    if (name !== 'file' || arriving) return void stream.resume()
    opened = stream
    arriving = files
      .receive(stream)
      .then((incoming) => ({ incoming, mimeType, filename, isTooLarge: stream.truncated === true }))
    // Seen below, once the form has ended.
    arriving.catch(() => undefined)
  })
  body.pipe(form)
  try {
    await Promise.all([finished(body), finished(form, { readable: false })])
    return { fields, file: await arriving }
  } catch {
    // A caller who went away leaves the part open.
    opened?.destroy(new Error('The caller went away.'))
    form.destroy()
    const file = await arriving?.catch(() => undefined)
    if (file) await files.discard(file.incoming)
    throw badParameter('The form is not whole.')
  }
}
