/** A look at all of a queue costs this at most as long as Postgres can forget what has left it. */
const cheapMs = 20
/** After a dearer one this many times as long passes as it took, until the next. */
const restTimes = 10

/**
 * While somebody's transaction stays open, Postgres keeps an entry of each row that has left a queue since, and a look from the queue's
 * beginning goes through them all. How long looks begin further on, in ms, after one from the beginning that took so long.
 */
export const restAfter = (tookMs: number): number => (tookMs > cheapMs ? tookMs * restTimes : 0)
