import { createHash, randomBytes } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { type FileHandle, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Kept, Store } from './store.ts'

/** What is being written lies apart, so that a crash leaves no half file where a file is looked for. */
const unfinished = '.unfinished'
/** Older ones were left by a crash: no file takes a day to arrive. */
const unfinishedMs = 24 * 60 * 60 * 1000

const wellFormed = /^[0-9a-f]{2}\/[0-9a-f]{32}$/

/** Files in a folder of this machine, or one that several machines mount. */
export function folderStore(folder: string): Store {
  const pathOf = (fileKey: string) => {
    if (!wellFormed.test(fileKey)) throw new Error(`${JSON.stringify(fileKey)} is no key of a file`)
    return join(folder, fileKey)
  }
  const swept = sweep(join(folder, unfinished))
  return {
    async put(fileKey, bytes) {
      const path = pathOf(fileKey)
      await swept
      const temporary = join(folder, unfinished, randomBytes(16).toString('hex'))
      await mkdir(dirname(temporary), { recursive: true })
      try {
        const kept = await write(temporary, bytes)
        // A folder that is new is not there after a power cut unless the one that holds it is written, too.
        if (await mkdir(dirname(path), { recursive: true })) await sync(folder)
        await rename(temporary, path)
        await sync(dirname(path))
        return kept
      } catch (err) {
        await rm(temporary, { force: true })
        throw err
      }
    },
    async open(fileKey, range) {
      const file = await open(pathOf(fileKey)).catch(absent)
      return file && createReadStream('', { fd: file, ...range, highWaterMark: 256 * 1024 })
    },
    async delete(fileKey) {
      await rm(pathOf(fileKey), { force: true })
    },
    async close() {
      await swept
    },
  }
}

async function write(path: string, bytes: AsyncIterable<Uint8Array>): Promise<Kept> {
  const file = await open(path, 'wx', 0o640)
  try {
    const kept = await pour(file, bytes)
    await file.sync()
    return kept
  } finally {
    await file.close()
  }
}

async function pour(file: FileHandle, bytes: AsyncIterable<Uint8Array>): Promise<Kept> {
  const hash = createHash('sha256')
  let size = 0
  for await (const chunk of bytes) {
    hash.update(chunk)
    size += chunk.length
    await file.writeFile(chunk)
  }
  return { size, sha256: hash.digest('hex') }
}

/** The name is as durable as the bytes only when its folder is written too. */
async function sync(folder: string) {
  const handle = await open(folder)
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

function absent(err: NodeJS.ErrnoException) {
  if (err.code === 'ENOENT') return null
  throw err
}

async function sweep(folder: string) {
  const names = await readdir(folder).catch(() => [])
  for (const name of names) {
    const path = join(folder, name)
    const found = await stat(path).catch(() => null)
    if (found && found.mtimeMs < Date.now() - unfinishedMs) await rm(path, { force: true })
  }
}
