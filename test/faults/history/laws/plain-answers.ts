import type { Call } from '../history.ts'
import type { Law } from '../law.ts'

/** Answers are those that are promised; trouble is a 503 that says when to come again, never a 500; a repeated key answers the same. */
export const plainAnswers: Law = ({ calls }) => {
  const keyed = Map.groupBy(
    calls.filter(({ key, status }) => key !== null && isSuccess(status)),
    ({ tenant, key }) => `${tenant} ${key}`,
  )
  const differing = [...keyed]
    .filter(([, all]) => new Set(all.map(({ status, text }) => `${status} ${text}`)).size > 1)
    .map(([key]) => `the key ${key} got different answers`)
  return [...calls.flatMap(faultOf), ...differing]
}

const isSuccess = (status: number | null) => status !== null && status < 300

function faultOf({ method, path, status, text, retryAfter, misfit }: Call) {
  const what = `${method} ${path}: ${status} ${text.slice(0, 300)}`
  if (misfit !== null) return [`${what} (${misfit})`]
  if (status !== null && status >= 500 && status !== 503) return [what]
  return status === 503 && retryAfter === null ? [`${what} without Retry-After`] : []
}
