import type { ServerResponse } from 'node:http'
import { createSoon } from '@app/shared/soon.ts'

const soon = createSoon()

/**
 * Ends an answer whose head was written, together with the others of this turn of the event loop. Between answers that leave
 * one by one whoever reads them goes to sleep, and to wake it costs more than all else: 0.55 of the gateway's time for a
 * `GET /me` at 64 connections.
 */
export function leave(response: ServerResponse, body: Uint8Array | string, encoding: BufferEncoding = 'utf8'): void {
  soon(() => response.end(body, encoding))
}
