import type { IncomingMessage } from 'node:http'
import { Problem } from '@app/shared/api/problem.ts'
import { clientIp, networkOf } from '../access/client-ip.ts'
import type { App } from '../app.ts'

/** Requests in work at a time, as many as a service takes. */
const maxCount = 4_096
/** Bytes of bodies held at a time, arriving ones included. */
const maxBytes = 256 * 1024 * 1024

/**
 * What this process holds of its clients at the moment. An owner, an organization or a network of strangers, has no more of
 * either than is left for the others: whoever has none finds room, also while some are slow, or many.
 */
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
    if (count > 0 && own.count + count > maxCount - inFlight.count) throw overloaded()
    if (bytes > 0 && own.bytes + bytes > maxBytes - inFlight.bytes) throw overloaded()
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

/** Who has no key, by network: the platform's callbacks, visitors, and whoever has the address of a file. */
export const strangersOf = ({ trustedProxies }: Pick<App, 'trustedProxies'>, raw: IncomingMessage): string =>
  `strangers of ${networkOf(clientIp(raw, trustedProxies))}`

const overloaded = () => new Problem('service_unavailable', { message: 'Too many requests are in work: try again.' })
