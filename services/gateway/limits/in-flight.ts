import { Problem } from '@app/shared/api/problem.ts'

/** Requests in work at a time, as many as a service takes. */
const maxCount = 4_096
/** Bytes of bodies held at a time, arriving ones included. */
const maxBytes = 256 * 1024 * 1024
/** What one owner may have of each: clients that are slow, or many, leave room for the others. */
const share = 1 / 2

/** Who has no key: the platform's callbacks, visitors, and whoever has the address of a file. */
export const strangers = 'strangers'

/** What this process holds of its clients at the moment; an owner is an organization, or `strangers`. */
export interface InFlight {
  count: number
  bytes: number
  /** Counts one request while the work runs. Throws `service_unavailable` when there are too many. */
  during: <T>(owner: string, work: () => Promise<T>) => Promise<T>
  /** Counts bytes that came in; give them back with a negative number. Throws when there are too many. */
  hold: (owner: string, bytes: number) => void
}

export function createInFlight(): InFlight {
  const owned = new Map<string, { count: number; bytes: number }>()

  /** Throws unless there is room for what is added. */
  function add(owner: string, count: number, bytes: number) {
    const own = owned.get(owner) ?? { count: 0, bytes: 0 }
    if (count > 0 && (inFlight.count >= maxCount || own.count >= maxCount * share)) throw overloaded()
    if (bytes > 0 && (inFlight.bytes + bytes > maxBytes || own.bytes + bytes > maxBytes * share)) throw overloaded()
    inFlight.count += count
    inFlight.bytes += bytes
    own.count += count
    own.bytes += bytes
    if (own.count === 0 && own.bytes === 0) owned.delete(owner)
    else owned.set(owner, own)
  }

  const inFlight: InFlight = {
    count: 0,
    bytes: 0,
    async during(owner, work) {
      add(owner, 1, 0)
      try {
        return await work()
      } finally {
        add(owner, -1, 0)
      }
    },
    hold: (owner, bytes) => add(owner, 0, bytes),
  }
  return inFlight
}

const overloaded = () => new Problem('service_unavailable', { message: 'Too many requests are in work: try again.' })
