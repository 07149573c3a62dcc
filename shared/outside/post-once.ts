import type { IncomingHttpHeaders } from 'node:http'
import type { Dispatcher } from 'undici'
import { gather } from '../values/gather.ts'
import { whenOverdue } from '../work/overdue.ts'

export interface Post {
  url: string
  /** By name, or name, value, name, value. */
  headers: Record<string, string> | string[]
  body: string | Buffer
  /** From now to the answer's last byte: the wait for a connection, DNS, TCP and TLS are in it. */
  timeoutMs: number
  /** Asked when there is a connection, which may be late, above all in a process that was frozen; if not, the host is told nothing. */
  mayBegin?: () => boolean
  /** Of the answer's body so much is read before it is given up, and so much is kept; all unless told otherwise. */
  most?: { readBytes: number; keptBytes: number }
}

/** What came of a post. */
export interface Posted {
  /** The request, or a part of it, may have reached the host. */
  hasBegun: boolean
  /** The answer's head; null when there is none. */
  head: { status: number; fields: IncomingHttpHeaders } | null
  /** What was kept of its body. */
  body: Buffer
  /** Why the body did not come to its end; undefined when it did. */
  err?: unknown
}

const everything = { readBytes: Infinity, keptBytes: Infinity }

/**
 * Posts once, without following redirects. undici says when it has a connection and begins to write (`onRequestStart`): whatever
 * fails before, be it the name, the way, the trust, a proxy or the wait for one of the connections, has told the host nothing.
 * The connection is given up only when the body did not end.
 */
export function postOnce(
  dispatcher: Dispatcher,
  { url, headers, body, timeoutMs, mayBegin = () => true, most = everything }: Post,
): Promise<Posted> {
  return new Promise((resolve) => {
    const { origin, pathname, search } = new URL(url)
    let controller: Dispatcher.DispatchController | undefined
    let head: Posted['head'] = null
    let isOver = false
    let received = 0
    const kept = gather()

    function end(err?: unknown) {
      if (isOver) return
      isOver = true
      callOff()
      resolve({ hasBegun: controller !== undefined, head, body: kept.bytes(), err })
    }
    function giveUp(err: Error) {
      end(err)
      controller?.abort(err)
    }
    const callOff = whenOverdue(timeoutMs, () => giveUp(new DOMException('no answer in time', 'TimeoutError')))

    const handler: Dispatcher.DispatchHandler = {
      onRequestStart(started) {
        if (isOver) return started.abort(new Error('given up before it began'))
        if (!mayBegin()) return started.abort(new Error('it came too late to begin'))
        controller = started
      },
      onResponseStart(_controller, status, fields) {
        // 103 and the like come before the answer.
        if (status >= 200) head = { status, fields }
      },
      onResponseData(_controller, chunk) {
        if (received < most.keptBytes) kept.add(chunk.subarray(0, most.keptBytes - received))
        received += chunk.length
        if (received >= most.readBytes) giveUp(new Error('read enough'))
      },
      onResponseEnd: () => end(),
      onResponseError: (_controller, err) => end(err),
    }
    try {
      const path = `${pathname}${search}`
      dispatcher.dispatch({ origin, path, method: 'POST', headers, body, headersTimeout: 0, bodyTimeout: 0 }, handler)
    } catch (err) {
      end(err)
    }
  })
}
