import { relative } from 'node:path'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/**
 * What takes some ten seconds and more on a quiet machine, most of it in waiting, in the order in which it runs: those that keep the
 * processor busy with a stack of their own are apart from each other.
 */
const first = [
  'test/faults/faults.test.ts',
  'test/faults/one-stack.test.ts',
  'test/journeys/onboarding.test.ts',
  'services/gateway/main.test.ts',
  'test/journeys/overheard.test.ts',
  'shared/mailbox/mailbox.test.ts',
  'test/faults/restore.test.ts',
  'deploy/nats/configuration.test.ts',
  'services/webhooks/subscriptions/changes.test.ts',
  'test/bench/bench.test.ts',
  'test/journeys/customers.test.ts',
  'services/platform/onboarding/onboarding.test.ts',
  'deploy/compose.test.ts',
  'test/journeys/docs.test.ts',
  'services/webhooks/attempts/attempts.test.ts',
  'test/journeys/access.test.ts',
  'services/messaging/media/copies.test.ts',
  'test/journeys/media.test.ts',
  'shared/bus/lost-steps.test.ts',
  'test/fuzz/tenants.test.ts',
  'services/messaging/steps.test.ts',
  'test/fuzz/slow-clients.test.ts',
  'shared/events/events.test.ts',
  'test/faults/tls.test.ts',
  'services/platform/organizations/update-organization.test.ts',
  'test/fuzz/requests.test.ts',
  'shared/events/audit.test.ts',
  'shared/events/stream-room.test.ts',
  'services/webhooks/fan-out/backlog.test.ts',
  'test/faults/late-servers.test.ts',
  'services/webhooks/steps.test.ts',
  'deploy/migrate.test.ts',
  'test/journeys/callbacks-more.test.ts',
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
