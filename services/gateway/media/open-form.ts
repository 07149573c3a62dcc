import type { IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import { invalidField, Problem } from '@app/shared/api/problem.ts'
import { Busboy } from '@fastify/busboy'
import { inviteBody } from '../exchange/invite-body.ts'

/** A multipart form, read up to the bytes of its file. */
export interface Form {
  /** To be read to the end, or closed. Throws when the client goes away, or the form breaks off. */
  bytes: AsyncIterable<Uint8Array>
  /** As the part says it, else the field `type` before it. */
  contentType: string | undefined
  /** What else it may be, where the part counts as text since it says nothing. */
  orType: string | undefined
  /** The field `type`, where the part leaves it to that what the file is. */
  typeParam: string | undefined
  filename: string | null
  /** Resolves when the form has ended well behind its file. */
  end: () => Promise<void>
  /** Nothing more of it is looked at: what still comes is for the answer to throw away. */
  close: () => void
}

const limits = { files: 1, fields: 16, fieldSize: 1_024, parts: 18, headerPairs: 16 }

const endedEarly = () =>
  new Problem('invalid_field_value', { message: 'The request body ended early, or is no multipart form.' })
const withoutFile = () => invalidField('file', 'file: the form holds no file.')

/** Opens the form of a request. Throws when it is none, or holds no file. */
export function openForm(raw: IncomingMessage): Promise<Form> {
  const contentType = raw.headers['content-type']
  if (!/^multipart\/form-data *;/i.test(contentType ?? ''))
    throw new Problem('unsupported_media_type', { message: 'Send the file as multipart/form-data.' })
  // Its client went away while it was looked up who it is: no `close` comes any more.
  if (raw.destroyed) throw endedEarly()
  const busboy = createParser(raw)
  const fields = new Map<string, string>()
  const ended = Promise.withResolvers<void>()
  // Nobody may be waiting for the end.
  ended.promise.catch(() => undefined)
  return new Promise((resolve, reject) => {
    let file: Readable | undefined
    busboy.on('field', (name, value) => fields.set(name, value))
    busboy.on('file', (_name, stream, filename, _encoding, mimeType) => {
      file = stream
      const isLeft = !isSaid(mimeType) || isByDefault(mimeType)
      // Whoever reads it learns of its failure there.
      stream.on('error', () => {})
      resolve({
        bytes: chunksOf(stream),
        contentType: isSaid(mimeType) ? mimeType : fields.get('type'),
        orType: isByDefault(mimeType) ? (fields.get('type') ?? '') : undefined,
        typeParam: isLeft && fields.has('type') ? 'type' : undefined,
        filename: tidyName(filename),
        end: () => ended.promise,
        close() {
          raw.unpipe(busboy)
          stream.destroy()
        },
      })
    })
    function fail(problem: Problem) {
      file?.destroy(problem)
      ended.reject(problem)
      reject(problem)
    }
    busboy.on('finish', () => {
      ended.resolve()
      reject(withoutFile())
    })
    busboy.on('error', () => fail(endedEarly()))
    // Comes without an end when the client went away or a time limit ended its connection.
    raw.on('close', () => raw.complete || fail(endedEarly()))
    inviteBody(raw)
    raw.pipe(busboy)
  })
}

/** The parser tells the reader of a part first that the form breaks off, in an error of its own. */
async function* chunksOf(stream: Readable): AsyncIterable<Uint8Array> {
  try {
    yield* stream as AsyncIterable<Uint8Array>
  } catch (err) {
    throw err instanceof Problem ? err : endedEarly()
  }
}

function createParser(raw: IncomingMessage) {
  try {
    const headers = { ...raw.headers, 'content-type': raw.headers['content-type'] ?? '' }
    return new Busboy({ headers, limits, isPartAFile })
  } catch (cause) {
    throw new Problem('invalid_field_value', { message: 'The Content-Type has no usable boundary.', cause })
  }
}

/** A part needs no filename to be one, which some clients leave out. */
const isPartAFile = (name: string | undefined, contentType: string | undefined, filename: string | undefined) =>
  filename !== undefined || name === 'file' || contentType === 'application/octet-stream'

/** What a client writes that knows no type. */
const isSaid = (mimeType: string | undefined) =>
  mimeType !== undefined && mimeType !== '' && !/^application\/octet-stream\b/i.test(mimeType)

/** A part without a type is text (RFC 7578, section 4.4): the parser says it of those too, such as Python's `requests` sends. */
const isByDefault = (mimeType: string | undefined) => /^text\/plain$/i.test(mimeType ?? '')

/** A name without a path, controls and broken characters. */
function tidyName(filename: string | undefined): string | null {
  const name = (filename ?? '')
    .toWellFormed()
    .replaceAll(/[\p{Cc}/\\]/gu, '')
    .trim()
  return name === '' ? null : name.slice(0, 255).toWellFormed()
}
