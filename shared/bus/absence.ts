import type { NatsConnection } from 'nats'

/** A tick that comes this late was not merely delayed: the process was stopped, or had no processor. */
const awayMs = 2_000
const tickMs = 500

/**
 * How long, in ms, the questions that this process reads now may have lain in its socket while it was away. A question says how long its
 * asker waits, and not since when, because clocks differ: without this, it would be worked on after its asker was told to ask again. Not
 * 0 until the server has answered a ping, since all that came during the absence has been read by then.
 */
export function watchAbsence(nc: NatsConnection): { lateMs: () => number; stop: () => void } {
  let seenAt = performance.now()
  let lateMs = 0
  let absences = 0

  function look() {
    const now = performance.now()
    const goneMs = now - seenAt
    seenAt = now
    if (goneMs < awayMs) return
    lateMs += goneMs
    const absence = ++absences
    const isRead = () => {
      if (absence === absences) lateMs = 0
    }
    nc.flush().then(isRead, isRead)
  }

  const timer = setInterval(look, tickMs)
  timer.unref()
  return {
    lateMs() {
      look()
      return lateMs
    },
    stop: () => clearInterval(timer),
  }
}
