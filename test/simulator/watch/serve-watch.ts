import { readFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import type { FastifyInstance } from 'fastify'
import type { App } from '../app.ts'

/** What the page may load: its own files, and the pictures that messages link to. */
const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src * data:; media-src *; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

const headers = {
  'content-security-policy': policy,
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-cache',
}

const files = [
  ['/', 'page.html', 'text/html; charset=utf-8'],
  ['/watch/page.css', 'page.css', 'text/css; charset=utf-8'],
  ['/watch/page.js', 'page.js', 'text/javascript; charset=utf-8'],
  ['/watch/customer.js', 'customer.js', 'text/javascript; charset=utf-8'],
  ['/watch/bubble.js', 'bubble.js', 'text/javascript; charset=utf-8'],
] as const

/** A page on which people watch the sends of each number, and play its customers. */
export function serveWatch(app: App, http: FastifyInstance) {
  for (const [path, name, type] of files) {
    const bytes = readFileSync(join(import.meta.dirname, name))
    http.get(path, (_request, reply) => reply.type(type).headers(headers).send(bytes))
  }
  http.get<{ Params: { id: string } }>('/watch/files/:id', async (request, reply) => {
    const medium = app.media.find(request.params.id)
    if (!medium) return reply.code(404).send()
    // Only what is looked at, and never run: a person may have sent a page.
    const isShown = /^(image|audio|video)\/(?!svg)/.test(medium.mimeType)
    return reply
      .type(isShown ? medium.mimeType : 'application/octet-stream')
      .header('x-content-type-options', 'nosniff')
      .send(await app.files.read(medium.id))
  })
  serveEvents(app, http)
}

/** Server-sent events; a browser that was away says which it saw last. */
function serveEvents({ feed }: App, http: FastifyInstance) {
  const open = new Set<ServerResponse>()
  http.get('/watch/events', (request, reply) => {
    reply.hijack()
    const { raw } = reply
    raw.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' })
    raw.write('retry: 1000\n\n')
    open.add(raw)
    const last = Number(request.headers['last-event-id'] ?? 0)
    const leave = feed.follow(Number.isSafeInteger(last) ? last : 0, (place, event) => {
      raw.write(`id: ${place}\ndata: ${JSON.stringify(event)}\n\n`)
    })
    raw.on('close', () => {
      leave()
      open.delete(raw)
    })
  })
  http.addHook('preClose', (done) => {
    for (const raw of open) raw.end()
    done()
  })
}
