import { defineConfig } from 'vitest/config'

/** The long stories of `npm run test:faults`: too long to be a part of `npm test`. One after the other: each measures. */
export default defineConfig({
  test: {
    name: 'long',
    root: import.meta.dirname,
    include: ['*.test.ts'],
    fileParallelism: false,
    testTimeout: 600_000,
    hookTimeout: 180_000,
  },
})
