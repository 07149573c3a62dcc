import { randomBytes } from 'node:crypto'

/** The beginning of a PNG: whoever takes a file looks at nothing else of it. */
export const pngHead = Buffer.from(
  '89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000001049444154',
  'hex',
)

/** A picture like no other, with so many bytes behind its beginning. */
export const png = (size = 100): Buffer => Buffer.concat([pngHead, randomBytes(size)])
