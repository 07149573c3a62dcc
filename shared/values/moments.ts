/**
 * The last moment that all take for one: in years of more than four digits Postgres, and most clients, read no time. What
 * is before 1970 is for Postgres not always one, either.
 */
export const lastMs = Date.UTC(9999, 11, 31, 23, 59, 59, 999)

/** A time as it was written; one out of the years 1970 to 9999 becomes the first or the last moment of them. */
export function bounded(time: string): string {
  const ms = Date.parse(time)
  if (ms < 0) return new Date(0).toISOString()
  return ms > lastMs ? new Date(lastMs).toISOString() : time
}
