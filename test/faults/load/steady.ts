import { Agent, request } from 'undici'
import type { Stack } from '../../journeys/start-stack.ts'

export interface Answered {
  path: string
  /** performance.now */
  startedAt: number
  tookMs: number
  /** Null: both gateways ended the connection, or took none. */
  status: number | null
  text: string
  retryAfter: string | null
}

export interface SteadyLoad {
  /** Until now. */
  answers: Answered[]
  /** Resolves when all that was asked until now is answered. */
  settled: () => Promise<unknown>
  /** Ends it, and waits for all answers. */
  stop: () => Promise<{ answers: Answered[]; accepted: string[] }>
}

/**
 * So many requests a second, whatever comes of them: three lists and a send with a key, in turn. They ask as clients behind
 * a balancer do: where nobody listens, or a connection is ended before it was answered, the other gateway is asked the same.
 * Nothing else is tried again.
 */
export function startSteadyLoad(stack: Stack, phones: string[], pace: number): SteadyLoad {
  const { api_key: key, phone_number_id: number, services } = stack
  const gateways = (services['gateway'] ?? []).map(({ public_url: url = '' }) => url)
  const agents = gateways.map(() => new Agent({ connections: 64 }))
  const answers: Answered[] = []
  const asking: Promise<void>[] = []

  async function once(n: number, turn: number, path: string, body?: object) {
    const place = turn % gateways.length
    const answer = await request(`${gateways[place]}/v1${path}`, {
      ...(agents[place] && { dispatcher: agents[place] }),
      method: body ? 'POST' : 'GET',
      headers: {
        authorization: `Bearer ${key}`,
        ...(body && { 'content-type': 'application/json', 'idempotency-key': `steady ${n}` }),
      },
      body: body ? JSON.stringify(body) : null,
    })
    const retryAfter = [answer.headers['retry-after'] ?? null].flat()[0] ?? null
    return { status: answer.statusCode, text: await answer.body.text(), retryAfter }
  }

  async function ask(n: number, path: string, body?: object) {
    const startedAt = performance.now()
    const answer = await once(n, n, path, body)
      .catch((first: unknown) =>
        once(n, n + 1, path, body).catch((err: unknown) => {
          throw new Error(`${String(first)}, then ${String(err)}`)
        }),
      )
      .catch((err: unknown) => ({ status: null, text: String(err), retryAfter: null }))
    answers.push({ path, startedAt, tookMs: performance.now() - startedAt, ...answer })
  }

  const one = (n: number) => {
    if (n % 4 === 0) return ask(n, `/${number}/contacts?limit=5`)
    if (n % 4 === 1) return ask(n, '/webhook_subscriptions')
    if (n % 4 === 2) return ask(n, '/customers')
    const to = phones[Math.floor(n / 4) % phones.length]
    return ask(n, `/${number}/messages`, { messaging_product: 'chat', to, type: 'text', text: { body: `n${n}` } })
  }
  const begunAt = performance.now()
  let n = 0
  // A timer that comes late is made up for.
  const timer = setInterval(() => {
    while (n < ((performance.now() - begunAt) / 1_000) * pace) asking.push(one(n++))
  }, 2)
  return {
    answers,
    settled: () => Promise.all(asking),
    async stop() {
      clearInterval(timer)
      await Promise.all(asking)
      await Promise.all(agents.map((agent) => agent.destroy()))
      const sends = answers.filter(({ path, status }) => status === 200 && path === `/${number}/messages`)
      return { answers, accepted: sends.map(({ text }) => (JSON.parse(text) as { data: { id: string } }).data.id) }
    },
  }
}
