import { GraphError } from '../graph/graph-error.ts'

const minuteMs = 60_000
const hourMs = 60 * minuteMs

interface Attempts {
  calls: number[]
  wrongPins: number[]
  deregisteredAt: number
}

export type Registrations = ReturnType<typeof createRegistrations>

/** How often each number was registered and deregistered, and how often its PIN was wrong. */
export function createRegistrations() {
  const attempts = new Map<string, Attempts>()

  function of(phoneNumberId: string) {
    const known = attempts.get(phoneNumberId) ?? { calls: [], wrongPins: [], deregisteredAt: -Infinity }
    attempts.set(phoneNumberId, known)
    return known
  }
  const within = (times: number[], ms: number, now: number) => times.filter((at) => at > now - ms)

  return {
    /** @throws 133016 for the 11th call within 72 hours */
    countCall(phoneNumberId: string, now = Date.now()) {
      const number = of(phoneNumberId)
      number.calls = within(number.calls, 72 * hourMs, now)
      if (number.calls.length >= 10) throw new GraphError(133_016)
      number.calls.push(now)
    },
    /** @throws 133015 within a minute of the number's deregistration */
    mustHaveRested(phoneNumberId: string, now = Date.now()) {
      if (of(phoneNumberId).deregisteredAt > now - minuteMs) throw new GraphError(133_015)
    },
    deregistered: (phoneNumberId: string, now = Date.now()) => {
      of(phoneNumberId).deregisteredAt = now
    },
    /** @throws 133005 for a wrong PIN, 133009 after three of them within 10 s, 133008 after five within an hour */
    checkPin(phoneNumberId: string, isRight: boolean, now = Date.now()) {
      const number = of(phoneNumberId)
      number.wrongPins = within(number.wrongPins, hourMs, now)
      if (number.wrongPins.length >= 5) throw new GraphError(133_008)
      if (within(number.wrongPins, 10_000, now).length >= 3) throw new GraphError(133_009)
      if (isRight) return
      number.wrongPins.push(now)
      throw new GraphError(133_005)
    },
  }
}
