import { expect, onTestFinished, test } from 'vitest'
import type { TestModule, TestSpecification } from 'vitest/node'
import ResultsReporter, { projectEnds, resultsOf } from './results-reporter.ts'

const moduleOf = (moduleId: string, state: string, tests: Record<string, number>) =>
  ({
    moduleId,
    state: () => state,
    children: { allTests: (wanted: string) => Array.from({ length: tests[wanted] ?? 0 }) },
  }) as unknown as TestModule

const good = moduleOf('/r/good.test.ts', 'passed', { passed: 3, skipped: 1 })
const bad = moduleOf('/r/bad.test.ts', 'failed', { passed: 2, failed: 1 })
const unrun = moduleOf('/r/unrun.test.ts', 'queued', {})
const resultOf = (name: string, passed: number, failed: number, isGood: boolean) => ({ name, passed, failed, isGood })

test('a file is good when it ended and nothing of it failed', () => {
  expect(resultsOf([good, bad, unrun], [])).toEqual({
    files: [
      resultOf('/r/good.test.ts', 3, 0, true),
      resultOf('/r/bad.test.ts', 2, 1, false),
      resultOf('/r/unrun.test.ts', 0, 0, false),
    ],
    strayErrors: 0,
  })
})

test.each([
  ['its stack names', { message: 'late', stack: 'Error: late\n    at /r/good.test.ts:3:1' }],
  ['ran as it came', { message: 'late', VITEST_TEST_PATH: '/r/good.test.ts' }],
  [
    'its stack names, whichever ran as it came',
    { message: 'late', stack: 'at /r/good.test.ts:3:1', VITEST_TEST_PATH: '/r/other.test.ts' },
  ],
])('an error outside all tests makes the file bad that %s', (_which, error) => {
  const other = moduleOf('/r/other.test.ts', 'passed', { passed: 1 })
  expect(resultsOf([good, other], [error])).toEqual({
    files: [resultOf('/r/good.test.ts', 3, 0, false), resultOf('/r/other.test.ts', 1, 0, true)],
    strayErrors: 0,
  })
})

test('an error of no file is told as the whole run’s', () => {
  const { files, strayErrors } = resultsOf([good], [{ message: 'Worker exited unexpectedly' }])
  expect([files[0]?.isGood, strayErrors]).toEqual([true, 1])
})

const inProject = (name: string) => ({ project: { name } })

test('a project of which all files have ended is told of, while others go on', () => {
  const told: unknown[] = []
  const hear = (name: unknown) => void told.push(name)
  projectEnds.subscribe(hear)
  onTestFinished(() => projectEnds.unsubscribe(hear))
  const reporter = new ResultsReporter()
  reporter.onTestRunStart(['short', 'long', 'short', 'long'].map(inProject) as TestSpecification[])
  const ends = ['short', 'long', 'short'].map((name) => {
    reporter.onTestModuleEnd(inProject(name) as TestModule)
    return [...told]
  })
  expect(ends).toEqual([[], [], ['short']])
})
