import { createHash } from 'node:crypto'
import { png } from '@app/test/png.ts'
import { expect, test } from 'vitest'
import type { Store } from '../store/store.ts'
import { receiveFile } from './receive-file.ts'

/** Keeps nothing but what is told of it. */
const store = {
  async put(_fileKey, bytes) {
    const hash = createHash('sha256')
    let size = 0
    for await (const chunk of bytes) {
      hash.update(chunk)
      size += chunk.length
    }
    return { size, sha256: hash.digest('hex') }
  },
} satisfies Partial<Store> as unknown as Store

async function* inPieces(bytes: Buffer, of: number) {
  for (let from = 0; from < bytes.length; from += of) yield bytes.subarray(from, from + of)
}

test.each([1, 3, 4_099, 4_100, 4_101])(
  'a file that comes in pieces of %i bytes is what its bytes say, and whole',
  async (of) => {
    const bytes = png(5_000)
    expect(await receiveFile(store, 'key', inPieces(bytes, of), { contentType: undefined })).toEqual({
      mimeType: 'image/png',
      kind: 'image',
      size: bytes.length,
      sha256: createHash('sha256').update(bytes).digest('hex'),
    })
  },
)
