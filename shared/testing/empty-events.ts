import type { TestService } from '@app/test/service.ts'
import { managerOf, restoreStream } from '../events/provision.ts'
import { streamName } from '../events/stream.ts'

/** The service and its stream as before the first event; nobody may be at it. */
export async function emptyEvents({ nc, sql }: TestService): Promise<void> {
  await restoreStream(nc, 1)
  await (await managerOf(nc)).streams.delete(streamName)
  await sql`
    truncate outbox, outbox_marks, relay_position, handled_events, dead_events, handled_ranges, handled_floors, event_audits
  `
  await sql`select setval('outbox_seq', 1, false)`
}
