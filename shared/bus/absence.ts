import type { NatsConnection } from 'nats'

/** A tick that comes so late was not merely delayed: the process was stopped, or had no processor. */
const awayMs = 2_000
const tickMs = 500

/**
 * How long, in ms, this process may have been away since the questions came that it reads now. A question says how long its asker
 * waits, and not since when, since clocks differ; one that lay in the socket of a frozen process would be done after its asker
 * was told to ask again. What came meanwhile has been read once the server has answered a ping; until then this is not 0.
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
