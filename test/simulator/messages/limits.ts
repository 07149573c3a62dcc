import { createBoundedMap } from '../bounded-map.ts'
import { GraphError } from '../graph/graph-error.ts'
import type { PhoneNumber } from '../numbers/numbers.ts'
import type { SettingsStore } from '../settings.ts'

const pairIntervalMs = 6_000
const pairBurst = 45
const remembered = 200_000

const tooMany = 'Message failed to send because there were too many messages sent from this phone number'

type Sender = Pick<PhoneNumber, 'phoneNumberId' | 'throughputPerSecond'>

export type Limits = ReturnType<typeof createLimits>

/** The platform's two paces, each kept only while its setting is on; a number may have a throughput of its own. */
export function createLimits(settings: SettingsStore) {
  /** When a pair has paid back all that it sent. */
  const paidAt = createBoundedMap<number>(remembered)
  const seconds = new Map<string, { second: number; sends: number }>()

  function chargeThroughput({ phoneNumberId, throughputPerSecond }: Sender, now: number) {
    const limit = throughputPerSecond ?? settings.current.throughput_per_second
    if (limit === null) return
    const second = Math.floor(now / 1_000)
    const known = seconds.get(phoneNumberId)
    const sends = known?.second === second ? known.sends : 0
    if (sends >= limit) throw new GraphError(130429, { details: `${tooMany} in a short period of time.` })
    seconds.set(phoneNumberId, { second, sends: sends + 1 })
  }

  function chargePair(phoneNumberId: string, recipient: string, now: number) {
    if (!settings.current.pair_limit) return
    const pair = `${phoneNumberId} ${recipient}`
    const owedFrom = Math.max(now, paidAt.get(pair) ?? 0)
    if (owedFrom - now > (pairBurst - 1) * pairIntervalMs)
      throw new GraphError(131056, { details: `${tooMany} to the same phone number in a short period of time.` })
    paidAt.set(pair, owedFrom + pairIntervalMs)
  }

  return {
    /** @throws 130429 or 131056 */
    charge: (number: Sender, recipient: string, now: number) => {
      chargeThroughput(number, now)
      chargePair(number.phoneNumberId, recipient, now)
    },
  }
}
