import { defineConfig } from 'vitest/config'

/** `npm run test:containers`: needs a Docker engine, and fetches images. */
export default defineConfig({
  test: {
    name: 'containers',
    root: import.meta.dirname,
    include: ['*.test.ts'],
    // They would meet at the ports and names of the same engine.
    fileParallelism: false,
    testTimeout: 240_000,
    hookTimeout: 900_000,
  },
})
