import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['{shared,services,deploy,test}/**/*.test.ts'],
    globalSetup: 'test/setup.ts',
    // Each file has its own database and its own nats-server, so that files do not meet.
    maxWorkers: 2,
    testTimeout: 20_000,
    hookTimeout: 60_000,
  },
})
