import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** What this process holds of objects and buffers, once garbage is collected. */
export function usedBytes(): number {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  collect()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}
