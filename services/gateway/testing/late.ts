import { freezeFor } from '@app/test/freeze.ts'

/** The event loop of this process is so late that a gateway which looks at it turns requests away, for a second. */
export async function beLate(): Promise<void> {
  for (let n = 0; n < 8; n++) {
    freezeFor(300)
    await new Promise((resolve) => setImmediate(resolve))
  }
}
