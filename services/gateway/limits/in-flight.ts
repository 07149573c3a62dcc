import { Problem } from '@app/shared/problem.ts'

/** Requests in work at a time, as many as a service takes. */
const maxCount = 4_096
/** Bytes of bodies held at a time, arriving ones included. */
const maxBytes = 256 * 1024 * 1024

/** What this process holds of its clients at the moment. */
export interface InFlight {
  count: number
  bytes: number
  /** Counts one request while the work runs. Throws `service_unavailable` when there are too many. */
  during: <T>(work: () => Promise<T>) => Promise<T>
  /** Counts bytes that came in; give them back with a negative number. Throws when there are too many. */
  hold: (bytes: number) => void
}

export function createInFlight(): InFlight {
  const inFlight: InFlight = {
    count: 0,
    bytes: 0,
    async during(work) {
      if (inFlight.count >= maxCount) throw overloaded()
      inFlight.count++
      try {
        return await work()
      } finally {
        inFlight.count--
      }
    },
    hold(bytes) {
      if (bytes > 0 && inFlight.bytes + bytes > maxBytes) throw overloaded()
      inFlight.bytes += bytes
    },
  }
  return inFlight
}

const overloaded = () => new Problem('service_unavailable', { message: 'Too many requests are in work: try again.' })
