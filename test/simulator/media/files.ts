import { createHash, randomUUID } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { mkdir, mkdtemp, open, readdir, rename, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'

/** A file that has come but has no name yet. */
export interface Incoming {
  sha256: string
  size: number
  path: string
}

export type Files = ReturnType<typeof createFiles>

/** A folder of files by name; without one of its own, a temporary folder that goes when it stops. */
export function createFiles(folder: string | undefined) {
  let made: Promise<string> | undefined
  const place = () => (made ??= folder === undefined ? mkdtemp(join(tmpdir(), 'simulator-media-')) : makeFolder(folder))

  return {
    /** Streams into the folder: no file is ever whole in memory. */
    receive: async (source: Readable): Promise<Incoming> => {
      const path = join(await place(), `incoming-${randomUUID()}`)
      const digest = createHash('sha256')
      let size = 0
      async function* counted(chunks: AsyncIterable<Buffer>) {
        for await (const chunk of chunks) {
          digest.update(chunk)
          size += chunk.length
          yield chunk
        }
      }
      try {
        await pipeline(source, counted, createWriteStream(path, { mode: 0o600 }))
      } catch (err) {
        await rm(path, { force: true })
        throw err
      }
      return { sha256: digest.digest('hex'), size, path }
    },
    keep: async ({ path }: Incoming, name: string) => rename(path, join(await place(), name)),
    discard: ({ path }: Incoming) => rm(path, { force: true }),
    /** @throws ENOENT */
    read: async (name: string) => (await open(join(await place(), name))).createReadStream(),
    remove: async (name: string) => rm(join(await place(), name), { force: true }),
    stop: async () => {
      if (folder === undefined && made) await rm(await made, { recursive: true, force: true })
    },
  }
}

/** What a crash left half received is nobody's. */
async function makeFolder(folder: string) {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const left = (await readdir(folder)).filter((name) => name.startsWith('incoming-'))
  await Promise.all(left.map((name) => rm(join(folder, name), { force: true })))
  return folder
}
