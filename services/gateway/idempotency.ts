import { hash } from 'node:crypto'
import { invalidField, Problem } from '@app/shared/api/problem.ts'

const name = 'Idempotency-Key'
const printable = /^[\x20-\x7e]{1,255}$/

/** The idempotency key of a POST; undefined when it has none. */
export function idempotencyKeyOf(header: string | string[] | undefined): string | undefined {
  if (header === undefined) return undefined
  const key = String(header)
  if (!printable.test(key)) throw invalidField(name, `${name} must have 1 to 255 printable ASCII characters.`)
  return key
}

/** A request that has a key. `body` is left out where it is not known yet, as that of an upload. */
interface Keyed {
  organizationId: string
  key: string
  url: string
  body?: Uint8Array
}

/**
 * Runs the work unless the same request is running in this gateway already with its key. Between gateways, over time, and
 * for another request with that key, the service's database decides (shared/idempotency/idempotency.ts).
 */
export type RunOnce = <T>(request: Keyed, work: () => Promise<T>) => Promise<T>

export function createRunOnce(): RunOnce {
  const running = new Set<string>()
  return async ({ organizationId, key, url, body }, work) => {
    const id = JSON.stringify([organizationId, key, url, body && hash('sha256', body)])
    if (running.has(id)) throw new Problem('idempotency_in_progress')
    running.add(id)
    try {
      return await work()
    } finally {
      running.delete(id)
    }
  }
}
