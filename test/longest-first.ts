import { relative } from 'node:path'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** What takes 15 s and more on a quiet machine, most of it in waiting, in the order in which it runs. */
const first = [
  'test/faults/faults.test.ts',
  'test/faults/kill-callbacks.test.ts',
  'test/bench/bench.test.ts',
  'test/faults/kill.test.ts',
  'services/webhooks/attempts/hostile.test.ts',
  'test/faults/restore.test.ts',
  'test/journeys/docs.test.ts',
  'deploy/compose.test.ts',
  'test/journeys/watching.test.ts',
  'test/journeys/onboarding.test.ts',
  'deploy/nats/configuration.test.ts',
  'deploy/stack/bus.test.ts',
  'services/webhooks/attempts/attempts.test.ts',
  'shared/mailbox/mailbox.test.ts',
  'services/gateway/main.test.ts',
  'services/webhooks/subscriptions/changes.test.ts',
  'shared/bus/lost-steps.test.ts',
  'test/journeys/customers.test.ts',
  'test/journeys/secrets.test.ts',
]

/** The longest files of all projects first, so that no worker is left with one of them at the end; the others by their size. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const placeOf = ({ moduleId }: TestSpecification) => {
      const place = first.indexOf(relative(this.ctx.config.root, moduleId))
      return place < 0 ? first.length : place
    }
    const sorted = await super.sort(files)
    return sorted.toSorted((a, b) => placeOf(a) - placeOf(b))
  }
}
