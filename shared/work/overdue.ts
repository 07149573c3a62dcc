/**
 * Calls `act` after so many milliseconds, once what has come by then was read; answers how to call it off. A process that was
 * busy or frozen comes to its timers before its sockets, and would take an answer that lies there for one that never came.
 */
export function whenOverdue(ms: number, act: () => void): () => void {
  let immediate: NodeJS.Immediate | undefined
  const timer = setTimeout(() => {
    immediate = setImmediate(act)
  }, ms)
  return () => {
    clearTimeout(timer)
    clearImmediate(immediate)
  }
}

/** What is answered within so many milliseconds, or a rejection; nobody is told of what comes later. */
export function inTime<T>(answer: Promise<T>, ms: number): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const callOff = whenOverdue(ms, () => reject(new Error(`no answer within ${ms} ms`)))
  return Promise.race([answer, promise]).finally(callOff)
}
