import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    maxWorkers: 2,
    projects: [
      {
        test: {
          name: 'parts',
          include: ['{shared,services,deploy}/**/*.test.ts', 'test/*.test.ts', 'test/{simulator,bench}/**/*.test.ts'],
          // Each file has its own database and its own nats-server, so that files do not meet.
          globalSetup: 'test/setup.ts',
          expect: { poll: { timeout: 10_000 } },
          testTimeout: 30_000,
          hookTimeout: 60_000,
        },
      },
      {
        test: {
          name: 'whole',
          // Over HTTP alone, against a stack that `npm start` made.
          include: ['test/{journeys,faults}/**/*.test.ts'],
          globalSetup: 'test/journeys/setup.ts',
          testTimeout: 60_000,
          hookTimeout: 120_000,
        },
      },
    ],
  },
})
