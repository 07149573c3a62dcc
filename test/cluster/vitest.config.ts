import { defineConfig } from 'vitest/config'

/** `npm run test:cluster`: too heavy to be a part of `npm test`. */
export default defineConfig({
  test: { name: 'cluster', root: import.meta.dirname, include: ['*.test.ts'] },
})
