import type { Logger } from 'pino'
import type { DataService, Service } from './service.ts'

const endAtOnce = () => process.exit(0)

/** Until there is something to stop in order. The first process of a container ignores a signal that it does not handle. */
export function endOnSignals(): void {
  if (process.pid === 1) for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, endAtOnce)
}

/** Everything is over by then, whatever hangs. */
const stopWithinMs = 24_000

type Step = () => unknown

/**
 * On SIGTERM or SIGINT closes each in the order given, those of an array together: first what brings work in, last what the work
 * needs. A step that fails is logged and does not hold the next; after 24 s the process ends as it is.
 */
export function stopInOrder({ log, probes, tracer }: Service, steps: Array<Step | Step[]>) {
  let stopping = false
  async function take(step: Step, n: number) {
    try {
      await step()
    } catch (err) {
      log.error({ err, n }, 'stop')
    }
  }
  async function stop(signal: string) {
    if (stopping) return
    stopping = true
    log.info({ signal }, 'stopping')
    setTimeout(() => exit(log, 1, 'not stopped in time'), stopWithinMs).unref()
    probes.addCheck('stopping', () => false)
    for (const [n, step] of [...steps, () => tracer?.stop()].entries()) {
      await Promise.all([step].flat().map((one) => take(one, n)))
    }
    exit(log, 0, 'stopped')
  }
  for (const signal of ['SIGTERM', 'SIGINT']) {
    process.off(signal, endAtOnce)
    process.on(signal, () => void stop(signal))
  }
}

/** Both connections to the bus say what they have left to say, and close. */
export const drainBus = ({ nc, eventBus }: DataService) => Promise.all([nc.drain(), eventBus.nc.drain()])

function exit(log: Logger, code: number, words: string) {
  log.info(words)
  log.flush(() => process.exit(code))
}
