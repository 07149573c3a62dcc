import { hash } from 'node:crypto'

/** `,"request_id":"…"}`: the end of an answer, and all of it that differs each time. */
const endLength = ',"request_id":""}'.length

/** The weak ETag of an answer: the same as long as it says the same. */
export const weakTagOf = (body: Uint8Array, requestId: string): string =>
  `W/"${hash('sha1', body.subarray(0, body.length - endLength - requestId.length), 'base64url')}"`

/** Whether the client has it already: `If-None-Match` is `*` or names the tag, weak or not. */
export function hasTag(ifNoneMatch: string | undefined, tag: string): boolean {
  if (ifNoneMatch === undefined) return false
  if (ifNoneMatch === '*') return true
  return ifNoneMatch.split(',').some((one) => one.trim().replace(/^W\//, '') === tag.slice(2))
}
