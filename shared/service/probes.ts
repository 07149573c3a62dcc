import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { collectDefaultMetrics, Registry } from 'prom-client'
import { gauge } from '../metrics/registered.ts'

/** A check that says nothing for so long has failed: a driver waits longer for a database that is away. */
const checkWithinMs = 2_000

/**
 * The event loop is woken as often to measure its delays, which is most of what a process costs that has nothing to do; with the
 * usual 10 ms, as much as all else together. What is late for longer is measured as well; the metric is never below it.
 */
const lagResolutionMs = 100

type Check = () => boolean | Promise<boolean>

export interface Probes {
  url: string
  metrics: Registry
  /** The service is ready when every check passes; a name that is checked again replaces the check. */
  addCheck: (name: string, check: Check) => void
  close: () => Promise<void>
}

/**
 * GET /livez (the event loop turns), /readyz (every check passes) and /metrics (Prometheus), on a port of their own.
 * `/readyz?exclude=nats` leaves a check out, as Kubernetes' own servers do.
 */
export async function startProbes(port: number, host: string): Promise<Probes> {
  const checks = new Map<string, Check>()
  const metrics = new Registry()
  collectDefaultMetrics({ register: metrics, eventLoopMonitoringPrecision: lagResolutionMs })

  gauge(
    metrics,
    { name: 'svc_ready', help: 'Whether this process answers: 1 when every check of /readyz passes.' },
    async () => ((await failedOf(checks)).length === 0 ? 1 : 0),
  )

  const server = createServer((request, response) => {
    const [path = '', query] = (request.url ?? '').split('?', 2)
    void answer(path, new URLSearchParams(query))
      // A metric that cannot be read, perhaps: no reason to end.
      .catch((err: unknown) => ({ status: 500, type: 'text/plain', body: `${String(err)}\n` }))
      .then(({ status, type, body }) => response.writeHead(status, { 'content-type': type }).end(body))
  })

  async function answer(path: string, query: URLSearchParams) {
    if (path === '/livez') return { status: 200, type: 'text/plain', body: 'ok\n' }
    if (path === '/metrics') return { status: 200, type: metrics.contentType, body: await metrics.metrics() }
    if (path !== '/readyz') return { status: 404, type: 'text/plain', body: 'not found\n' }
    const failed = await failedOf(checks, query.getAll('exclude'))
    return failed.length === 0
      ? { status: 200, type: 'text/plain', body: 'ok\n' }
      : { status: 503, type: 'text/plain', body: `not ready: ${failed.join(', ')}\n` }
  }

  await listen(server, port, host)
  const { port: bound } = server.address() as AddressInfo
  return {
    url: `http://${host}:${bound}`,
    metrics,
    addCheck: (name, check) => void checks.set(name, check),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        // Else it waits for whoever has connected and says nothing.
        server.closeAllConnections()
      }),
  }
}

async function failedOf(checks: Map<string, Check>, excluded: string[] = []) {
  const asked = [...checks].filter(([name]) => !excluded.includes(name))
  const results = await Promise.all(asked.map(async ([name, check]) => ((await passes(check)) ? [] : [name])))
  return results.flat()
}

const passes = async (check: Check) => {
  try {
    return await Promise.race([check(), sleep(checkWithinMs, false, { ref: false })])
  } catch {
    return false
  }
}

const listen = (server: Server, port: number, host: string) =>
  new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(port, host, () => resolve())
  })
