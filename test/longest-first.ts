import { relative } from 'node:path'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/**
 * Files, and projects for all others of theirs, in the order in which they run. Those of a project are together: a worker goes on
 * with the next file only if that is of its project, and a new one loads everything anew. What takes some ten seconds and more on a
 * quiet machine, most of it in waiting, is named; those that keep the processor busy with a stack of their own are apart from each other.
 */
const order = [
  'test/faults/faults.test.ts',
  'test/faults/one-stack.test.ts',
  'shared/mailbox/shares.test.ts',
  'shared/mailbox/leases.test.ts',
  'test/journeys/onboarding.test.ts',
  'test/journeys/overheard.test.ts',
  'test/journeys/customers.test.ts',
  'test/journeys/docs.test.ts',
  'test/journeys/media.test.ts',
  'test/fuzz/slow-clients.test.ts',
  'test/fuzz/tenants.test.ts',
  'test/fuzz/requests.test.ts',
  'test/journeys/callbacks-more.test.ts',
  'whole',
  'test/faults/restore.test.ts',
  'test/faults/late-servers.test.ts',
  'faults',
  'services/gateway/main.test.ts',
  'deploy/nats/configuration.test.ts',
  'services/gateway/api-log/api-log.test.ts',
  'deploy/stack/bus.test.ts',
  'services/webhooks/subscriptions/changes.test.ts',
  'test/bench/bench.test.ts',
  'services/platform/onboarding/onboardings.test.ts',
  'deploy/compose.test.ts',
  'services/webhooks/attempts/attempts.test.ts',
  'shared/bus/lost-steps.test.ts',
  'services/messaging/steps.test.ts',
  'shared/events/events.test.ts',
  'shared/events/audit.test.ts',
  'shared/events/stream-room.test.ts',
  'services/webhooks/fan-out/backlog.test.ts',
  'services/webhooks/steps.test.ts',
  'deploy/migrate.test.ts',
  'parts',
]

/** The longest files first, so that no worker is left with one of them at the end; the others by their size. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const placeOf = ({ moduleId, project }: TestSpecification) => {
      const place = order.indexOf(relative(this.ctx.config.root, moduleId))
      return place < 0 ? order.indexOf(project.name) : place
    }
    const sorted = await super.sort(files)
    return sorted.toSorted((a, b) => placeOf(a) - placeOf(b))
  }
}
