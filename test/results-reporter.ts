import { channel } from 'node:diagnostics_channel'
import { writeFileSync } from 'node:fs'
import type { Reporter, SerializedError, TestModule, TestSpecification } from 'vitest/node'

/** What `test/run.ts` wants to know of a run. */
export interface Results {
  files: FileResult[]
  /** Errors outside all tests that no file is known to have made. */
  strayErrors: number
}

interface FileResult {
  name: string
  passed: number
  failed: number
  /** Nothing of it failed, and no error of it came outside its tests. */
  isGood: boolean
}

/** Tells, by its name, of a project of which all files have ended, while others go on: what it alone needs may end. */
export const projectEnds = channel('test-project-ends')

/** Writes the results of a run into the file that `TEST_RESULTS` names. */
export default class ResultsReporter implements Reporter {
  /** Files of each project that have not ended. */
  private readonly open = new Map<string, number>()

  onTestRunStart(specifications: readonly TestSpecification[]) {
    for (const { project } of specifications) this.open.set(project.name, (this.open.get(project.name) ?? 0) + 1)
  }

  onTestModuleEnd({ project: { name } }: TestModule) {
    const left = (this.open.get(name) ?? 0) - 1
    this.open.set(name, left)
    if (left === 0) projectEnds.publish(name)
  }

  onTestRunEnd(modules: readonly TestModule[], errors: readonly SerializedError[]) {
    const path = process.env['TEST_RESULTS']
    if (path === undefined) throw new Error('TEST_RESULTS names no file.')
    writeFileSync(path, JSON.stringify(resultsOf(modules, errors)))
  }
}

export function resultsOf(modules: readonly TestModule[], errors: readonly SerializedError[]): Results {
  const names = modules.map(({ moduleId }) => moduleId)
  const culprits = errors.map((error) => culpritOf(error, names))
  const files = modules.map((module) => {
    const count = (state: 'passed' | 'failed') => [...module.children.allTests(state)].length
    const isGood = ['passed', 'skipped'].includes(module.state()) && !culprits.includes(module.moduleId)
    return { name: module.moduleId, passed: count('passed'), failed: count('failed'), isGood }
  })
  return { files, strayErrors: culprits.filter((name) => name === undefined).length }
}

/** Files of a worker follow each other in one process: what an error itself names goes before the file that ran as it came. */
function culpritOf(error: SerializedError, names: string[]): string | undefined {
  const text = `${error.stack ?? ''}\n${error.message}`
  return names.find((name) => text.includes(name)) ?? names.find((name) => name === error['VITEST_TEST_PATH'])
}
