import { createHash } from 'node:crypto'
import secureJsonParse from 'secure-json-parse'
import { invalidField, Problem } from './problem.ts'

/** Deeper input is refused before anything recursive sees it: 40,000 levels overflow the stack of sort, stringify and jsonb. */
const maxDepth = 32

const utf8 = new TextDecoder('utf-8', { fatal: true })

interface ParseOptions {
  /** What happens to U+0000 and lone surrogates: the caller's own mistake is refused, a customer's text is mended. */
  brokenText?: 'refuse' | 'drop'
}

/** JSON as a stranger sent it: at most 32 levels, no `__proto__`, no text that Postgres cannot hold. */
export function parseJson(bytes: Uint8Array, { brokenText = 'refuse' }: ParseOptions = {}): unknown {
  if (depthOf(bytes) > maxDepth)
    throw new Problem('invalid_field_value', { message: `The request body is JSON deeper than ${maxDepth} levels.` })
  const text = decode(bytes)
  const value = parse(text)
  // Only an escape can smuggle in U+0000 or a lone surrogate: raw ones are no JSON or no UTF-8.
  const mayBeBroken = text.includes('\\u')
  if (brokenText === 'drop') return mayBeBroken ? mendText(value) : value
  if (mayBeBroken) refuseBrokenText(value, '')
  return oddNumber.test(text) ? settleNumbers(value, '') : value
}

/** How a number looks that may be beyond all (`1e400`), or a zero with a sign. */
const oddNumber = /-0|\d[eE]\+?\d|(?<!\d)\d{309}/

/** The value as it is read back after it was stored: zero has no sign there. Throws for a number that would become null. */
function settleNumbers(value: unknown, path: string): unknown {
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw invalidField(path, `${path || 'body'} is too large a number.`)
    return value === 0 ? 0 : value
  }
  if (Array.isArray(value)) return value.map((item, n) => settleNumbers(item, `${path}[${n}]`))
  if (typeof value !== 'object' || value === null) return value
  const below = (key: string) => (path === '' ? key : `${path}.${key}`)
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, settleNumbers(item, below(key))]))
}

/** The value without U+0000, and with a mark in the place of lone surrogates. */
export function mendText(value: unknown): unknown {
  if (typeof value === 'string') return value.replaceAll('\0', '').toWellFormed()
  if (Array.isArray(value)) return value.map(mendText)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [String(mendText(key)), mendText(item)]))
}

function decode(bytes: Uint8Array) {
  try {
    return utf8.decode(bytes)
  } catch (cause) {
    throw new Problem('invalid_field_value', { message: 'The request body is not UTF-8.', cause })
  }
}

function parse(text: string): unknown {
  try {
    return secureJsonParse.parse(text, { protoAction: 'remove', constructorAction: 'remove' })
  } catch (cause) {
    throw new Problem('invalid_field_value', {
      message: `The request body is not valid JSON: ${faultIn(cause)}.`,
      cause,
    })
  }
}

/** What the parser found, and where: by line and column, or by what stands around it, whose first and last character it may have cut in two. */
const faultIn = (err: unknown) =>
  err instanceof Error
    ? err.message.replace(/ at position \d+(?= )| is not valid JSON$/, '').toWellFormed()
    : 'unreadable'

/** Throws for U+0000 and lone surrogates, with the path of the text; keys count too. */
export function refuseBrokenText(value: unknown, path: string): void {
  if (typeof value === 'string') {
    if (isBroken(value)) throw invalidField(path, `${path || 'body'} must not hold U+0000 or a lone surrogate.`)
    return
  }
  if (typeof value !== 'object' || value === null) return
  for (const [key, item] of Object.entries(value)) {
    if (isBroken(key)) throw invalidField(path, 'A key must not hold U+0000 or a lone surrogate.')
    refuseBrokenText(item, Array.isArray(value) ? `${path}[${key}]` : path === '' ? key : `${path}.${key}`)
  }
}

const isBroken = (text: string) => text.includes('\0') || !text.isWellFormed()

const quote = 0x22
const backslash = 0x5c

function depthOf(bytes: Uint8Array) {
  let depth = 0
  let deepest = 0
  let inText = false
  for (let n = 0; n < bytes.length; n++) {
    const byte = bytes[n]
    if (inText) {
      if (byte === backslash) n++
      else if (byte === quote) inText = false
    } else if (byte === quote) inText = true
    else if (byte === 0x7b || byte === 0x5b) deepest = Math.max(deepest, ++depth)
    else if (byte === 0x7d || byte === 0x5d) depth--
  }
  return deepest
}

/** sha256 of method, path with query, and the body with its keys sorted: what makes two requests the same one. */
export const fingerprintOf = (target: string, body: unknown): string =>
  createHash('sha256')
    .update(target)
    .update('\n')
    .update(JSON.stringify(sortKeys(body)) ?? '')
    .digest('base64url')

function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(entries.map(([key, item]) => [key, sortKeys(item)]))
}
