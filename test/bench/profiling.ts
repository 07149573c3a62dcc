import type { Bench } from './bench.ts'
import { costsOf, monotonicMicros } from './profiles.ts'
import { costsOfOne, spentBetween } from './statements.ts'

/** From now on it is watched what the project's functions and statements cost; `end` stops the project and tells. */
export async function beginProfiling(bench: Bench): Promise<{ end: () => Promise<string[]> }> {
  const project = await bench.project()
  await bench.fixture()
  const before = await bench.statements()
  const from = monotonicMicros()
  return {
    async end() {
      const to = monotonicMicros()
      const statements = spentBetween(before, await bench.statements())
      const { services } = project.roots()
      // They leave their profiles when they end.
      await project.stop()
      const functions = costsOf(project.profiles ?? '', services, { from, to })
      return [...functions, ...costsOfOne('all that was measured', statements, 1)]
    },
  }
}
