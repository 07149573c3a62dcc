import type { Dispatcher } from 'undici'

export interface Call {
  url: string
  headers: Record<string, string>
  body: string
  /** From now to the answer's last byte. */
  timeoutMs: number
}

/** The whole answer, or why there is none. `hasBegun`: the request, or a part of it, may have reached the host. */
export type Exchanged = { status: number; text: string } | { status: null; hasBegun: boolean; err: unknown }

/**
 * Posts once. undici says when it has a connection and begins to write (`onRequestStart`): whatever fails before, be it the name, the
 * way, the trust, a proxy or the wait for one of the connections, has told the host nothing.
 */
export function postOnce(dispatcher: Dispatcher, { url, headers, body, timeoutMs }: Call): Promise<Exchanged> {
  return new Promise((resolve) => {
    const { origin, pathname, search } = new URL(url)
    let controller: Dispatcher.DispatchController | undefined
    let isOver = false
    let status = 0
    const chunks: Buffer[] = []

    function end(exchanged: Exchanged) {
      if (isOver) return
      isOver = true
      clearTimeout(timer)
      resolve(exchanged)
    }
    const fail = (err: unknown) => end({ status: null, hasBegun: controller !== undefined, err })
    const timer = setTimeout(() => {
      const late = new DOMException(`no answer within ${timeoutMs} ms`, 'TimeoutError')
      fail(late)
      controller?.abort(late)
    }, timeoutMs)

    const handler: Dispatcher.DispatchHandler = {
      onRequestStart(started) {
        if (isOver) return started.abort(new Error('given up before it began'))
        controller = started
      },
      onResponseStart(_controller, code) {
        status = code
      },
      onResponseData(_controller, chunk) {
        chunks.push(chunk)
      },
      onResponseEnd: () => end({ status, text: Buffer.concat(chunks).toString() }),
      onResponseError: (_controller, err) => fail(err),
    }
    try {
      const path = `${pathname}${search}`
      dispatcher.dispatch({ origin, path, method: 'POST', headers, body, headersTimeout: 0, bodyTimeout: 0 }, handler)
    } catch (err) {
      fail(err)
    }
  })
}
