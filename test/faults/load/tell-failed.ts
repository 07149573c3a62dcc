import { type Call, hasFailed, type History } from '../history/history.ts'

/** Answers the requests that failed, and says how many there were. */
export function tellFailed({ calls, accepted }: History): Call[] {
  const failed = calls.filter(hasFailed)
  console.log(`${accepted.length} sends accepted, ${failed.length} of ${calls.length} requests failed meanwhile`)
  return failed
}
