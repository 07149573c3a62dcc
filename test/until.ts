import { vi } from 'vitest'

/** Waits for what must come; long enough for a machine that is busy with other things. */
export const until = <T>(check: () => T | Promise<T>, timeout = 20_000): Promise<T> =>
  vi.waitFor(check, { timeout, interval: 20 })
