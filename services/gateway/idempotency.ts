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

/**
 * Runs the work unless the same key of the organization is running in this gateway already. Between gateways, and over
 * time, the service's database decides (shared/idempotency/idempotency.ts).
 */
export type RunOnce = <T>(organizationId: string, key: string, work: () => Promise<T>) => Promise<T>

export function createRunOnce(): RunOnce {
  const running = new Set<string>()
  return async (organizationId, key, work) => {
    const id = `${organizationId}:${key}`
    if (running.has(id)) throw new Problem('idempotency_in_progress')
    running.add(id)
    try {
      return await work()
    } finally {
      running.delete(id)
    }
  }
}
