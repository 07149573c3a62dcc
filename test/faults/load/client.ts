import { setTimeout as sleep } from 'node:timers/promises'
import { Agent, request } from 'undici'
import type { Json } from '../../journeys/client.ts'
import { misfitOf } from '../../journeys/openapi-check.ts'
import type { Call, History } from '../history/history.ts'
import { oneOf, type Random } from '../random.ts'

type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE'

interface Ask {
  body?: object
  /** Its `Idempotency-Key`. */
  key?: string
}

export interface Answered {
  status: number
  body: Json
  /** When the first request left, and when this answer came. */
  startedAt: number
  answeredAt: number
}

/** Whoever waits longer than that gives up on a request. */
const requestTimeoutMs = 12_000
/** Whoever gets no answer for so long has found a stack that does not recover. */
const patienceMs = 120_000

export type Client = ReturnType<typeof createClient>

/** An integrator's program, which writes down all that it does: it asks again until there is an answer. */
export function createClient(history: History, gateways: string[], tenant: string, key: string) {
  const agent = new Agent({ connections: 64, keepAliveTimeout: 2_000 })

  /** One request, whatever comes of it. */
  async function once(random: Random, method: Method, path: string, ask: Ask = {}): Promise<Call> {
    const startedAt = Date.now()
    const call = { tenant, method, path, key: ask.key ?? null, startedAt }
    try {
      const answer = await request(`${oneOf(random, gateways)}${path}`, {
        dispatcher: agent,
        method,
        headers: {
          authorization: `Bearer ${key}`,
          ...(ask.body && { 'content-type': 'application/json' }),
          ...(ask.key !== undefined && { 'idempotency-key': ask.key }),
        },
        body: ask.body ? JSON.stringify(ask.body) : null,
        signal: AbortSignal.timeout(requestTimeoutMs),
      })
      const text = await answer.body.text()
      const retryAfter = [answer.headers['retry-after'] ?? null].flat()[0] ?? null
      const misfit = misfitOf(method, path, answer.statusCode, text)
      return { ...call, endedAt: Date.now(), status: answer.statusCode, text, retryAfter, misfit }
    } catch {
      return { ...call, endedAt: Date.now(), status: null, text: '', retryAfter: null, misfit: null }
    }
  }

  /** Answers what is neither trouble of the moment nor silence. */
  async function surely(random: Random, method: Method, path: string, ask: Ask = {}): Promise<Answered> {
    const startedAt = Date.now()
    for (let waitMs = 100; Date.now() - startedAt < patienceMs; waitMs = Math.min(waitMs * 2, 1_000)) {
      const call = await once(random, method, path, ask)
      history.calls.push(call)
      const { status, text, endedAt } = call
      if (status !== null && status < 500 && status !== 409 && status !== 429) {
        return { status, body: JSON.parse(text), startedAt, answeredAt: endedAt }
      }
      await sleep(waitMs)
    }
    throw new Error(`no answer for ${method} ${path} in ${patienceMs / 1000} s`)
  }

  /** The `data` of a success. */
  async function data(random: Random, method: Method, path: string, ask: Ask = {}): Promise<Json> {
    const { status, body } = await surely(random, method, path, ask)
    if (status >= 300) throw new Error(`${method} ${path}: ${status} ${JSON.stringify(body)}`)
    return body.data
  }

  /** All items of a list, page by page. */
  async function everything(random: Random, path: string): Promise<Json[]> {
    const items: Json[] = []
    for (let cursor: string | null = ''; cursor !== null;) {
      const { body } = await surely(
        random,
        'GET',
        `${path}&limit=100${cursor && `&cursor=${encodeURIComponent(cursor)}`}`,
      )
      items.push(...body.data)
      cursor = body.next_cursor
    }
    return items
  }

  return { once, surely, data, everything, close: () => agent.destroy() }
}
