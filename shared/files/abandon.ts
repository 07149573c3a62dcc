import type { Readable } from 'node:stream'

/** Closes a stream of bytes, whether it was read to its end, in part, or never begun: what it still says is nobody's. */
export const abandon = (bytes: Readable): void => void bytes.on('error', () => {}).destroy()
