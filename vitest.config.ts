import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'
import { keepFoldersInMemory } from './test/folders-in-memory.ts'
import { LongestFirst } from './test/longest-first.ts'

/** Some guarantees are about time, and a machine of CI may be busy with other things; at home a failure is a failure. */
const retry = process.env['CI'] ? 2 : 0

/** Files of a worker share their modules: to load them anew for each takes two thirds again of the time of all. */
const isolate = false

keepFoldersInMemory()

export default defineConfig({
  test: {
    // Two more than there are cores: files that wait leave time to others, and more of them at once take more of it from each other than
    // that. A large machine need not show what it can.
    maxWorkers: Math.min(availableParallelism(), 6) + 2,
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        test: {
          name: 'parts',
          include: [
            '{shared,services,deploy}/**/*.test.ts',
            'test/*.test.ts',
            'test/{audit,simulator,bench,docs}/**/*.test.ts',
            'test/faults/{history,nemesis}/*.test.ts',
          ],
          // Each file has its own database and its own nats-server, so that files do not meet.
          globalSetup: 'test/setup.ts',
          expect: { poll: { timeout: 10_000 } },
          testTimeout: 30_000,
          retry,
          isolate,
          hookTimeout: 60_000,
        },
      },
      {
        test: {
          name: 'whole',
          // Over HTTP alone, against a stack that `npm start` made.
          include: ['test/{journeys,fuzz}/**/*.test.ts'],
          globalSetup: 'test/journeys/setup.ts',
          testTimeout: 60_000,
          retry,
          isolate,
          hookTimeout: 120_000,
        },
      },
      {
        test: {
          name: 'faults',
          // Each file has a stack of its own, which it breaks.
          include: ['test/faults/*.test.ts'],
          testTimeout: 240_000,
          retry,
          isolate,
          hookTimeout: 120_000,
        },
      },
    ],
  },
})
