import { relative } from 'node:path'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** What takes long, in seconds on a quiet machine of two cores; most of them is spent in waiting. */
const seconds: Record<string, number> = {
  'test/faults/faults.test.ts': 110,
  'test/bench/bench.test.ts': 90,
  'test/faults/servers.test.ts': 67,
  'test/faults/sends.test.ts': 60,
  'test/faults/kill-callbacks.test.ts': 45,
  'services/webhooks/attempts/hostile.test.ts': 45,
  'test/faults/kill.test.ts': 38,
  'services/directory/lists.test.ts': 35,
  'test/faults/rotate-keys.test.ts': 33,
  'test/journeys/docs.test.ts': 29,
  'deploy/compose.test.ts': 27,
  'test/faults/rolling-restart.test.ts': 25,
  'test/journeys/watching.test.ts': 25,
  'test/journeys/onboarding.test.ts': 23,
  'deploy/nats/configuration.test.ts': 19,
  'services/webhooks/attempts/attempts.test.ts': 18,
  'test/journeys/customers.test.ts': 18,
  'services/webhooks/fan-out/fan-out.test.ts': 16,
  'test/journeys/secrets.test.ts': 15,
}

/** The longest files of all projects first, so that no worker is left with one of them at the end; the others by their size. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const secondsOf = ({ moduleId }: TestSpecification) => seconds[relative(this.ctx.config.root, moduleId)] ?? 0
    const others = await super.sort(files)
    return others.toSorted((a, b) => secondsOf(b) - secondsOf(a))
  }
}
