import type { ByteRange } from '@app/shared/store/store.ts'

/**
 * The part of a file that a `Range` header asks for; null when it lies outside. Undefined: the whole file, as for a header
 * that is malformed or names several parts, which a server may ignore (RFC 9110, 14.2).
 */
export function rangeOf(header: string | undefined, size: number): ByteRange | null | undefined {
  const [, first = '', last = ''] = /^bytes=(\d*)-(\d*)$/.exec(header ?? '') ?? []
  if (first === '' && last === '') return undefined
  if (first === '')
    return Number(last) === 0 || size === 0 ? null : { start: Math.max(0, size - Number(last)), end: size - 1 }
  const start = Number(first)
  const end = last === '' ? size - 1 : Math.min(Number(last), size - 1)
  if (last !== '' && Number(last) < start) return undefined
  return start < size ? { start, end } : null
}
