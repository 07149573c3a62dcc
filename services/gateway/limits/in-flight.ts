import type { IncomingMessage } from 'node:http'
import { Problem } from '@app/shared/api/problem.ts'
import { createHoldings, type Held, mostHeld } from '@app/shared/work/holdings.ts'
import { clientIp, networkOf } from '../access/client-ip.ts'
import type { App } from '../app.ts'

/** Of all strangers together: one attacker may have enough networks to take all that there is. */
const mostOfStrangers: Held = { count: mostHeld.count / 4, bytes: mostHeld.bytes / 4 }

/**
 * What this process holds of its clients at the moment. An owner, an organization or a network of strangers, has no more of
 * either than is left for the others: whoever has none finds room, also while some are slow, or many. All strangers together
 * have a quarter, in which the same holds among them.
 */
export interface InFlight extends Held {
  /** Counts one request while the work runs. Throws `service_unavailable` when there are too many. */
  during: <T>(owner: string, work: () => Promise<T>) => Promise<T>
  /** Counts bytes that came in; give them back with a negative number. Throws when there are too many. */
  hold: (owner: string, bytes: number) => void
}

export function createInFlight(): InFlight {
  const { all, of, add } = createHoldings()
  const ofStrangers: Held = { count: 0, bytes: 0 }

  /** Throws unless there is room for what is added. */
  function take(owner: string, count: number, bytes: number) {
    const own = of(owner)
    const isStranger = owner.startsWith(strangers)
    const added = { count, bytes }
    if (!hasRoom(mostHeld, all, own, added)) throw overloaded()
    if (isStranger && !hasRoom(mostOfStrangers, ofStrangers, own, added)) throw overloaded()
    add(owner, count, bytes)
    if (!isStranger) return
    ofStrangers.count += count
    ofStrangers.bytes += bytes
  }

  return Object.assign(all, {
    async during<T>(owner: string, work: () => Promise<T>) {
      take(owner, 1, 0)
      try {
        return await work()
      } finally {
        take(owner, -1, 0)
      }
    },
    hold: (owner: string, bytes: number) => take(owner, 0, bytes),
  })
}

const hasRoom = (limit: Held, held: Held, own: Readonly<Held>, added: Held) =>
  (added.count <= 0 || own.count + added.count <= limit.count - held.count) &&
  (added.bytes <= 0 || own.bytes + added.bytes <= limit.bytes - held.bytes)

const strangers = 'strangers of '

/** Who has no key, by network: visitors, whoever has the address of a file, and the platform until it has signed. */
export const strangersOf = ({ trustedProxies }: Pick<App, 'trustedProxies'>, raw: IncomingMessage): string =>
  strangers + networkOf(clientIp(raw, trustedProxies))

const overloaded = () => new Problem('service_unavailable', { message: 'Too many requests are in work: try again.' })
