import type { IncomingHttpHeaders } from 'node:http'
import { failureOf, type NamedFailure } from '@app/shared/outside/egress-error.ts'
import { createSoon } from '@app/shared/work/soon.ts'
import type { Dispatcher } from 'undici'

/** Attempts that begin in one turn of the event loop leave one right after the other: 1.1 to 1.4 times the deliveries. */
const soon = createSoon()

/** DNS, TCP, TLS, headers and snippet together. */
const attemptTimeoutMs = 15_000
/** Read so much of an answer's body, so that most connections can be used again; keep so much. */
const readBytes = 16 * 1024
const snippetBytes = 4 * 1024

export interface Post {
  url: string
  /** Name, value, name, value. */
  headers: string[]
  body: Buffer
  timeoutMs?: number
}

/** What the endpoint answered, or why it did not. */
export type Answer =
  | { status: number; retryAfter: string | undefined; snippet: string }
  | { status: null; failure: NamedFailure }

/**
 * Posts without following redirects. The answer is decided at its headers: a body that breaks off, or goes on for ever,
 * changes nothing. The connection is given up only when the body did not end.
 */
export function post(dispatcher: Dispatcher, { url, headers, body, timeoutMs = attemptTimeoutMs }: Post) {
  return new Promise<Answer>((resolve) => {
    const { origin, pathname, search } = new URL(url)
    let controller: Dispatcher.DispatchController | undefined
    let answered: { status: number; retryAfter: string | undefined } | undefined
    let ended = false
    let received = 0
    const chunks: Buffer[] = []

    function end(err?: unknown) {
      if (ended) return
      ended = true
      clearTimeout(timer)
      if (answered) resolve({ ...answered, snippet: snippetOf(chunks) })
      else resolve({ status: null, failure: failureOf(err) })
    }
    function giveUp(err: Error) {
      end(err)
      controller?.abort(err)
    }
    const timer = setTimeout(() => giveUp(new DOMException('no answer in time', 'TimeoutError')), timeoutMs)

    const handler: Dispatcher.DispatchHandler = {
      onRequestStart(started) {
        controller = started
        if (ended) started.abort(new Error('given up before it began'))
      },
      onResponseStart(_controller, status, fields) {
        // 103 and the like come before the answer.
        if (status >= 200) answered = { status, retryAfter: one(fields, 'retry-after') }
      },
      onResponseData(_controller, chunk) {
        if (received < snippetBytes) chunks.push(chunk)
        received += chunk.length
        if (received >= readBytes) giveUp(new Error('read enough'))
      },
      onResponseEnd: () => end(),
      onResponseError: (_controller, err) => end(err),
    }
    soon(() => {
      try {
        const path = `${pathname}${search}`
        dispatcher.dispatch({ origin, path, method: 'POST', headers, body, headersTimeout: 0, bodyTimeout: 0 }, handler)
      } catch (err) {
        end(err)
      }
    })
  })
}

function one(fields: IncomingHttpHeaders, name: string) {
  const value = fields[name]
  return Array.isArray(value) ? value[0] : value
}

/** Text that Postgres can hold: broken UTF-8 is replaced, U+0000 dropped. */
const snippetOf = (chunks: Buffer[]) =>
  Buffer.concat(chunks).subarray(0, snippetBytes).toString('utf8').replaceAll('\0', '')
