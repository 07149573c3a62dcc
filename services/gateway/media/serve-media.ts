import type { ServerResponse } from 'node:http'
import { pipeline } from 'node:stream/promises'
import { abandon } from '@app/shared/files/abandon.ts'
import { call } from '@app/shared/bus/ask.ts'
import { findMedia } from '@app/shared/contracts/media.ts'
import { newId } from '@app/shared/values/ids.ts'
import { toProblem } from '@app/shared/api/problem.ts'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { z } from 'zod'
import type { App } from '../app.ts'
import { takeOverWatched } from '../exchange/watched.ts'
import { hasBody } from '../exchange/read-body.ts'
import { say } from '../exchange/say.ts'
import { traceparentOf } from '../exchange/trace.ts'
import { strangersOf } from '../limits/in-flight.ts'
import { rangeOf } from './range.ts'

const timeoutMs = 10_000
/** How much of a file lies here while its client does not read: what was read ahead, and what waits to be written. */
const heldBytes = 512 * 1024

type File = z.output<typeof findMedia.answer>

/** `GET` and `HEAD /media/{opaque}`: a stored file, for whoever has its address. Outside the envelope and without a key. */
export function routeMedia(http: FastifyInstance, app: App): void {
  for (const method of ['GET', 'HEAD'] as const) {
    http.route(
      takeOverWatched(app, method, '/media/:opaque', (request, reply) => {
        reply.hijack()
        void serveFile(app, request, reply).catch((err: unknown) => fail(app, reply.raw, err))
      }),
    )
  }
}

async function serveFile(app: App, request: FastifyRequest, { raw: response }: FastifyReply) {
  const owner = strangersOf(app, request.raw)
  const deadline = performance.now() + timeoutMs
  const file = await app.inFlight.during(owner, () =>
    app.fileTurns(owner, deadline, () => find(app, request, deadline)),
  )
  const headers = {
    ...headersOf(file),
    // Nobody reads the request's body, and a next request on this connection would have to wait for its end.
    ...((app.isStopping() || hasBody(request.raw)) && { connection: 'close' }),
  }
  const etag = `"${file.sha256}"`
  const { range: asked, 'if-range': ifRange, 'if-none-match': known } = request.headers
  if (known?.split(',').some((one) => one.trim().replace(/^W\//, '') === etag || one.trim() === '*')) {
    response.writeHead(304, headers).end()
    return
  }
  const range = ifRange === undefined || ifRange === etag ? rangeOf(asked, file.size) : undefined
  if (range === null) {
    response.writeHead(416, { ...headers, 'content-range': `bytes */${file.size}`, 'content-length': '0' }).end()
    return
  }
  const status = range ? 206 : 200
  const length = range ? range.end - range.start + 1 : file.size
  const sized = {
    ...headers,
    'content-length': String(length),
    ...(range && { 'content-range': `bytes ${range.start}-${range.end}/${file.size}` }),
  }
  if (request.method === 'HEAD' || length === 0) {
    response.writeHead(status, sized).end()
    return
  }
  await whileHeld(app, file, length, async () => {
    const bytes = await app.store.open(file.file_key, range)
    if (!bytes) throw new Error(`${file.file_key} is not in the store`)
    try {
      response.writeHead(status, sized)
      await pipeline(bytes, response)
    } finally {
      // To a client that has gone meanwhile nothing is piped, and nobody else would close them.
      abandon(bytes)
    }
  })
}

/** Counted as the organization's, but apart from its requests: whoever has the addresses of its files keeps none of those out. */
async function whileHeld({ inFlight }: App, file: File, length: number, work: () => Promise<void>) {
  const owner = `files of ${file.organization_id ?? 'strangers'}`
  const bytes = Math.min(length, heldBytes)
  inFlight.hold(owner, bytes)
  try {
    await work()
  } finally {
    inFlight.hold(owner, -bytes)
  }
}

function find(app: App, { params, headers }: FastifyRequest, deadline: number): Promise<File> {
  const caller = {
    organizationId: '',
    keyId: '',
    requestId: newId('req'),
    deadline,
    traceparent: traceparentOf(headers.traceparent),
  }
  return call(app, findMedia, { params: params as { opaque: string } }, caller)
}

/** Types that a browser shows by itself and that cannot hold a script. The platform's are kept as it wrote them, in any case. */
const shown = /^(image\/(?!svg)|audio\/|video\/)/i

/** A stranger's file under our name: nothing in it may run, and what is not to be looked at is saved. */
function headersOf({ mime_type: mimeType, filename, sha256 }: File) {
  const name =
    filename === null ? '' : `; filename*=UTF-8''${encodeURIComponent(filename).replaceAll(/['()*]/g, escaped)}`
  return {
    'content-type': /^[\w.+-]+\/[\w.+-]+(; *[\w-]+=[\w.+-]+)*$/.test(mimeType) ? mimeType : 'application/octet-stream',
    'content-disposition': `${shown.test(mimeType) ? 'inline' : 'attachment'}${name}`,
    'x-content-type-options': 'nosniff',
    'content-security-policy': 'sandbox',
    'referrer-policy': 'no-referrer',
    'x-robots-tag': 'noindex',
    'accept-ranges': 'bytes',
    'cache-control': 'private, max-age=86400',
    etag: `"${sha256}"`,
  }
}

const escaped = (character: string) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`

function fail(app: App, response: ServerResponse, err: unknown) {
  // Its client has gone, or the store broke off. The pipeline has ended the connection: a part is not to be taken for the whole.
  if (response.headersSent) return
  const problem = toProblem(err)
  if (problem.status === 404) return say(app, response, 404, 'not found')
  app.warnSparingly({ err: problem.cause ?? problem }, 'media')
  say(app, response, 503, 'try again')
}
