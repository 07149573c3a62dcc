import { setTimeout as sleep } from 'node:timers/promises'

interface Stoppable {
  stop: () => Promise<unknown>
}

export interface Ending {
  /** Starts something that must be stopped at the end. What was started last is stopped first. */
  begin: <T extends Stoppable>(start: () => Promise<T>) => Promise<T>
  isStopping: () => boolean
  /** Stops everything in order; a second call waits for the first. */
  stop: () => Promise<void>
}

/** Something that is still starting when it should stop gets as long to finish; then it is left to the next start to clear away. */
const startingMs = 5_000

export function createEnding(): Ending {
  const begun: Array<Promise<Stoppable>> = []
  let stopping: Promise<void> | undefined

  async function stopAll() {
    for (const starting of begun.toReversed()) {
      const nothing = sleep(startingMs, undefined, { ref: false })
      const started = await Promise.race([starting.catch(() => undefined), nothing])
      await started?.stop()
    }
  }

  return {
    async begin(start) {
      if (stopping) throw new Error('Stopped while starting.')
      const starting = start()
      begun.push(starting)
      return starting
    },
    isStopping: () => stopping !== undefined,
    stop: () => (stopping ??= stopAll()),
  }
}
