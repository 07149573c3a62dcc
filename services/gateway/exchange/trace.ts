import { randomBytes } from 'node:crypto'

const given = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/

const pool = { text: '', used: 0 }
const poolBytes = 6 * 1024
const traceLength = 32
const spanLength = 16

/** The W3C trace context of a request: the client's own, when it is well-formed, or a new one. */
export function traceparentOf(header: string | string[] | undefined): string {
  if (typeof header === 'string' && given.test(header)) return header
  return `00-${randomHex(traceLength)}-${randomHex(spanLength)}-00`
}

/** From a pool, since a call to the system's generator costs more than the whole rest. */
function randomHex(length: number) {
  if (pool.used + length > pool.text.length) {
    pool.text = randomBytes(poolBytes).toString('hex')
    pool.used = 0
  }
  pool.used += length
  return pool.text.slice(pool.used - length, pool.used)
}
