import { randomFillSync } from 'node:crypto'
import { monotonicFactory } from 'ulid'
import { z } from 'zod'
import { lastMs } from './moments.ts'

/** The prefixes of the public API (section 2.1) and those of `docs/decisions`. */
export type Prefix =
  | 'msg' | 'tmpl' | 'cnv' | 'ctc' | 'lbl' | 'cus' | 'csl' | 'wbs' | 'sec' | 'wbd' | 'evt' | 'org' | 'key' | 'req'
  | 'team' | 'usr' | 'acc' | 'med' | 'rpl' // prettier-ignore

const pool = new Uint32Array(1024)
let used = pool.length

/** One random number in [0, 1) from a pool: a call to the system's generator per character costs 20 times more. */
function random() {
  if (used === pool.length) {
    randomFillSync(pool)
    used = 0
  }
  return (pool[used++] ?? 0) / 2 ** 32
}

const next = monotonicFactory(random)
const anyTime = monotonicFactory(random)

/** A new identifier: `prefix_` and a ULID, whose first 48 bits are the time in milliseconds. */
export const newId = (prefix: Prefix): string => `${prefix}_${next()}`

/**
 * A new identifier minted at another time, such as the upstream's for an inbound message. Its times are whole seconds, so
 * those of one time rise as they are minted: behind the time that was given stand the time now and 30 bits.
 */
export function newIdAt(prefix: Prefix, at: Date): string {
  const now = anyTime()
  return `${prefix}_${timeCharacters(at.getTime())}${now.slice(0, 10)}${now.slice(20)}`
}

const alphabet = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'

function timeCharacters(timeMs: number) {
  let rest = Math.max(0, Math.trunc(timeMs))
  let out = ''
  for (let n = 0; n < 10; n++) {
    out = alphabet.charAt(rest % 32) + out
    rest = Math.floor(rest / 32)
  }
  return out
}

/** The time in an identifier. One that was never minted may have a later one than there is. */
export function timeOf(id: string): Date {
  const from = id.indexOf('_') + 1
  let timeMs = 0
  for (let n = from; n < from + 10; n++) timeMs = timeMs * 32 + alphabet.indexOf(id.charAt(n))
  return new Date(Math.min(timeMs, lastMs))
}

/** The smallest identifier of that prefix minted at the given time: bounds of a range over ids. */
export const firstIdAt = (prefix: Prefix, at: Date): string =>
  `${prefix}_${timeCharacters(at.getTime())}${'0'.repeat(16)}`

const articleOf = (prefix: Prefix) => (/^[aeo]/.test(prefix) ? 'an' : 'a')

/**
 * The schema of an identifier of one kind. Any 26 characters are one (public API, section 2.1); its description tells how
 * ours begin, which are ULIDs.
 */
export const idOf = (prefix: Prefix) =>
  z
    .string()
    .regex(new RegExp(`^${prefix}_[0-9A-HJKMNP-TV-Z]{26}$`), `must be ${articleOf(prefix)} ${prefix}_ id`)
    .meta({ pattern: `^${prefix}_[0-7][0-9A-HJKMNP-TV-Z]{25}$` })
