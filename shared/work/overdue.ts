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
