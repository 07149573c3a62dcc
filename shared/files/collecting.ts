import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** So many bytes may have passed before their buffers are freed. */
const everyBytes = 4 * 1024 * 1024

type Collect = (options: { type: 'minor'; execution: 'sync' }) => void

let collect: Collect | undefined

/**
 * The same bytes, while the buffers of those that have passed are freed. By itself V8 lets them grow to 32 MB, twice the
 * size of its young generation, before it looks: measured, an upload of 95 MB raised the gateway by 46 MB, and so by
 * less than 2. A collection of the young generation takes under 1 ms here.
 */
export async function* collecting(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let passed = 0
  for await (const chunk of bytes) {
    yield chunk
    passed += chunk.length
    if (passed < everyBytes) continue
    passed = 0
    collect ??= exposeCollection()
    collect({ type: 'minor', execution: 'sync' })
  }
}

/** V8 gives the function to contexts that are made while the flag is set. */
function exposeCollection(): Collect {
  setFlagsFromString('--expose-gc')
  const exposed = runInNewContext('gc') as Collect
  setFlagsFromString('--no-expose-gc')
  return exposed
}
