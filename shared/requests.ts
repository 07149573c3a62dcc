import { randomBytes, randomFillSync } from 'node:crypto'
import { ErrorCode, type Msg, type MsgHdrs, type NatsConnection, NatsError } from 'nats'
import { createSoon } from './soon.ts'

/** Sends a question and waits for its answer. Rejects when nobody serves the subject, when the time is up, or when the bus is lost meanwhile. */
export type Request = (subject: string, body: Uint8Array, headers: MsgHdrs, timeoutMs: number) => Promise<Msg>

interface Waiting {
  resolve: (message: Msg) => void
  reject: (err: unknown) => void
  /** performance.now */
  giveUpAt: number
}

const sweepMs = 50
const tokenBytes = 12

/**
 * Words that nobody guesses. Every service may write into the inboxes of those that ask it, so an answer counts by the
 * token of its question, which only the one that was asked has seen. The random bytes are drawn many at a time.
 */
function createTokens() {
  const pool = Buffer.alloc(tokenBytes * 512)
  let next = pool.length
  return () => {
    if (next === pool.length) {
      randomFillSync(pool)
      next = 0
    }
    return pool.toString('base64url', next, (next += tokenBytes))
  }
}

/**
 * Questions over one inbox. The client's own `request` makes an error with a stack for every answer that it gets (nats 2.29,
 * `RequestOne.cancel`) and a timer for each question: 7 % of the gateway's time. Here one timer watches all of them, and the
 * questions of one turn of the event loop leave in one write.
 */
export function createRequests(nc: NatsConnection, inboxPrefix: string) {
  // Not the client's own ids: who has seen one of those can tell the next, where the events come.
  const inbox = `${inboxPrefix}.${randomBytes(16).toString('base64url')}`
  const waiting = new Map<string, Waiting>()
  const soon = createSoon()
  const newToken = createTokens()

  function take(token: string) {
    const one = waiting.get(token)
    waiting.delete(token)
    return one
  }

  nc.subscribe(`${inbox}.*`, {
    callback: (_err, message) => {
      const one = take(message.subject.slice(inbox.length + 1))
      if (message.data.length === 0 && message.headers?.code === 503)
        one?.reject(NatsError.errorForCode(ErrorCode.NoResponders))
      else one?.resolve(message)
    },
  })
  const sweep = setInterval(() => {
    const now = performance.now()
    for (const [token, { giveUpAt }] of waiting) {
      if (giveUpAt <= now) take(token)?.reject(NatsError.errorForCode(ErrorCode.Timeout))
    }
  }, sweepMs)
  sweep.unref()

  const request: Request = (subject, body, headers, timeoutMs) =>
    new Promise((resolve, reject) => {
      const token = newToken()
      waiting.set(token, { resolve, reject, giveUpAt: performance.now() + timeoutMs })
      soon(() => {
        try {
          nc.publish(subject, body, { headers, reply: `${inbox}.${token}` })
        } catch (err) {
          take(token)?.reject(err)
        }
      })
    })

  /** The answers to what is out will not come any more. */
  function abandon() {
    for (const token of waiting.keys()) take(token)?.reject(NatsError.errorForCode(ErrorCode.Disconnect))
  }

  return { request, abandon }
}
