import type { Bench } from './bench.ts'
import { costsOf, monotonicMicros } from './profiles.ts'
import { forgetStatements, statementCosts, watchStatements } from './project/statements.ts'

/** From now on it is watched what the project's functions and statements cost; `end` stops the project and tells. */
export async function beginProfiling(bench: Bench): Promise<{ end: () => Promise<string[]> }> {
  const project = await bench.project()
  const hasStatements = await watchStatements(project)
  await bench.fixture()
  if (hasStatements) await forgetStatements(project.sql())
  const from = monotonicMicros()
  return {
    async end() {
      const to = monotonicMicros()
      const statements = hasStatements ? await statementCosts(project.sql()) : []
      const { services } = project.roots()
      // They leave their profiles when they end.
      await project.stop()
      return [...costsOf(project.profiles ?? '', services, { from, to }), ...statements]
    },
  }
}
