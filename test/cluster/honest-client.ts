import { setTimeout as sleep } from 'node:timers/promises'
import { Agent, request } from 'undici'
import { type Call, hasFailed, type History } from '../faults/history/history.ts'
import type { Json } from '../journeys/client.ts'
import { misfitOf } from '../journeys/openapi-check.ts'
import type { Stack } from '../journeys/start-stack.ts'

type Method = 'GET' | 'POST'

/** A request with all its tries. */
export interface Asked {
  what: string
  tries: Call[]
  startedAt: number
  endedAt: number
  /** The answer's `data` or list; null when every try failed. */
  body: Json
}

/** Before the second to the tenth try: together 10 s. */
const waitsMs = [100, 200, 400, 800, 1_000, 1_500, 2_000, 2_000, 2_000]
/** Whoever answers later is not waited for. */
export const tryTimeoutMs = 5_000

export type HonestClient = ReturnType<typeof createHonestClient>

/**
 * An integrator's program as the documentation wants it: what failed by a connection, by time or by a 5xx is tried again
 * with the same key at the next gateway, ten times at most. It writes down all that it does.
 */
export function createHonestClient(stack: Stack, history: History) {
  const gateways = (stack.services['gateway'] ?? []).map(({ public_url: url }) => `${url}/v1`)
  const agent = new Agent({ connections: 64 })
  const asked: Asked[] = []
  let turn = 0

  async function once(method: Method, path: string, key: string | null, body: object | undefined): Promise<Call> {
    const startedAt = Date.now()
    const call = { tenant: stack.organization_id, method, path, key, startedAt, misfit: null }
    try {
      const answer = await request(`${gateways[turn++ % gateways.length]}${path}`, {
        dispatcher: agent,
        method,
        headers: {
          authorization: `Bearer ${stack.api_key}`,
          ...(body && { 'content-type': 'application/json' }),
          ...(key !== null && { 'idempotency-key': key }),
        },
        body: body ? JSON.stringify(body) : null,
        signal: AbortSignal.timeout(tryTimeoutMs),
      })
      const [text, status] = [await answer.body.text(), answer.statusCode]
      const retryAfter = [answer.headers['retry-after'] ?? null].flat()[0] ?? null
      return { ...call, endedAt: Date.now(), status, text, retryAfter, misfit: misfitOf(method, path, status, text) }
    } catch (err) {
      return { ...call, endedAt: Date.now(), status: null, text: String(err), retryAfter: null }
    }
  }

  /** Answers a 2xx; throws when it was refused, or when all tries failed. */
  async function ask(method: Method, path: string, body?: object, key: string | null = null): Promise<Asked> {
    const tries: Call[] = []
    const one: Asked = { what: `${method} ${path} ${key ?? ''}`, tries, startedAt: Date.now(), endedAt: 0, body: null }
    asked.push(one)
    for (const waitMs of [0, ...waitsMs]) {
      await sleep(waitMs)
      const call = await once(method, path, key, body)
      tries.push(call)
      history.calls.push(call)
      if (mayPass(call)) continue
      one.endedAt = call.endedAt
      if (Number(call.status) >= 300) throw new Error(`${one.what} was refused: ${call.status} ${call.text}`)
      one.body = JSON.parse(call.text)
      return one
    }
    one.endedAt = Date.now()
    throw new Error(`${one.what} failed ${tries.length} times: ${tries.map(shownTry).join('; ')}`)
  }

  return { asked, ask, close: () => agent.destroy() }
}

/** Trouble of the moment, as which the documentation counts a key that is still in work. */
export const mayPass = (call: Call): boolean => hasFailed(call) || call.status === 409

const shownTry = ({ status, text, startedAt, endedAt }: Call) =>
  `${status ?? 'no answer'} in ${endedAt - startedAt} ms ${text.slice(0, 200)}`
