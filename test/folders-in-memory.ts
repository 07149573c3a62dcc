import { existsSync, statfsSync } from 'node:fs'

const memory = '/dev/shm'
/** What all tests together need at a time is less than half of it. */
const leastFreeBytes = 6 * 1024 ** 3

/**
 * Temporary folders lie in memory where there is room, unless `TMPDIR` says where: each test file has a database of its
 * own, which is some thousand files that are deleted a second later.
 */
export function keepFoldersInMemory(): void {
  if (process.env['TMPDIR'] || !existsSync(memory)) return
  const { bavail, bsize } = statfsSync(memory)
  if (bavail * bsize >= leastFreeBytes) process.env['TMPDIR'] = memory
}
