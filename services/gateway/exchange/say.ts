import type { ServerResponse } from 'node:http'
import type { App } from '../app.ts'
import { respond } from './respond.ts'

/** An answer in plain text, outside the envelope of the public API. */
export function say(app: App, response: ServerResponse, status: number, text: string) {
  const headers = ['Content-Type', 'text/plain; charset=utf-8', 'X-Content-Type-Options', 'nosniff']
  headers.push('Content-Length', String(Buffer.byteLength(text)))
  if (status === 503) headers.push('Retry-After', '1')
  if (app.isStopping()) headers.push('Connection', 'close')
  respond(response, status, headers, text)
}
