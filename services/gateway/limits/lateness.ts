import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { FastifyInstance } from 'fastify'
import type { Take } from '../exchange/take-over.ts'

const resolutionMs = 10
const sampleMs = 1_000

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Answers while requests are turned away, instead of what does for all; null: the route itself goes on answering. */
    whenLate?: Take | null
  }
}

/**
 * Turns requests away while the event loop was late by more than `mostMs` on average over the last second; 0: never. `turnAway` hijacks
 * the reply. Not `@fastify/under-pressure`: it reads the memory of the process, too, which throws in a timer, and so ends the
 * process, when no file can be opened any more.
 */
export function turnAwayWhenLate(http: FastifyInstance, mostMs: number, turnAway: Take): void {
  if (mostMs === 0) return
  const delay = monitorEventLoopDelay({ resolution: resolutionMs })
  delay.enable()
  let lateMs = 0
  const sampling = setInterval(() => {
    // No sample at all was taken in that second.
    lateMs = Number.isNaN(delay.mean) ? Infinity : delay.mean / 1e6 - resolutionMs
    delay.reset()
  }, sampleMs)
  http.addHook('onRequest', (request, reply, next) => {
    const { whenLate = turnAway } = request.routeOptions.config
    if (lateMs <= mostMs || whenLate === null) return next()
    whenLate(request, reply)
  })
  http.addHook('onClose', (_http, done) => {
    clearInterval(sampling)
    delay.disable()
    done()
  })
}
