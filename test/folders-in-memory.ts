import { existsSync, readFileSync, statfsSync } from 'node:fs'

const memory = '/dev/shm'
/** Four times what all tests together need at a time. */
const leastFreeBytes = 6 * 1024 ** 3

/**
 * Temporary folders lie in memory where there is room, unless `TMPDIR` says where: each test file has a database of its
 * own, which is some thousand files that are deleted a second later.
 */
export function keepFoldersInMemory(): void {
  if (process.env['TMPDIR'] || !existsSync(memory) || isForDataAlone()) return
  const { bavail, bsize } = statfsSync(memory)
  if (bavail * bsize >= leastFreeBytes) process.env['TMPDIR'] = memory
}

/** Container engines forbid to run what lies there, and a test runs the programs of an image. The last mount is what is seen. */
function isForDataAlone() {
  const mounts = readFileSync('/proc/mounts', 'utf8').matchAll(/ \/dev\/shm \S+ (\S+)/g)
  return [...mounts].at(-1)?.[1]?.split(',').includes('noexec') ?? false
}
