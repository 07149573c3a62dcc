import { spawnSync } from 'node:child_process'
import { closeSync, mkdirSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'

/** A disk of its own under a folder, in memory, that can be full. */
export interface SmallDisk {
  /** Takes every byte that is left, also those that others give back meanwhile. */
  fill: () => void
  free: () => void
  unmount: () => void
}

const refillMs = 100
const pieces = [1024 * 1024, 4096]

/** Undefined where we may not mount one: as others than root, in most containers, on other systems than Linux. */
export function mountSmallDisk(folder: string, megabytes: number): SmallDisk | undefined {
  mkdirSync(folder, { recursive: true, mode: 0o711 })
  const options = `size=${megabytes}m,mode=711`
  if (spawnSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', folder]).status !== 0) return undefined
  const ballast = join(folder, 'ballast')
  let filling: NodeJS.Timeout | undefined
  const free = () => {
    clearInterval(filling)
    rmSync(ballast, { force: true })
  }
  return {
    fill() {
      writeAll(ballast)
      filling = setInterval(() => writeAll(ballast), refillMs)
    },
    free,
    unmount() {
      free()
      spawnSync('umount', ['--lazy', folder])
    },
  }
}

/** Until nothing more fits. */
function writeAll(path: string) {
  const file = openSync(path, 'a')
  try {
    for (const piece of pieces) {
      const zeros = Buffer.alloc(piece)
      while (isWritten(file, zeros));
    }
  } finally {
    closeSync(file)
  }
}

function isWritten(file: number, bytes: Buffer) {
  try {
    return writeSync(file, bytes) > 0
  } catch (err) {
    if (err instanceof Error && 'code' in err && err.code === 'ENOSPC') return false
    throw err
  }
}
