import { consumers } from '@app/shared/events/provision.ts'
import { streamName } from '@app/shared/events/stream.ts'
import type { Project } from './project.ts'
import { until } from './until.ts'

/** What was accepted and still waits, by kind. */
export interface Backlog {
  /** Messages that are not at the platform yet. */
  sends: number
  /** Parts of the platform's callbacks. */
  callbacks: number
  /** Committed events that are not on the stream, or not fanned out. */
  events: number
  deliveries: number
}

const drainTimeoutMs = 300_000
const lookEveryMs = 400

export async function backlogOf(project: Project): Promise<Backlog> {
  const [row] = await project.sql()<Backlog[]>`
    select (select count(*) from messaging.sends)::int as sends,
      (select count(*) from messaging.callback_items)::int as callbacks,
      (select count(*) from messaging.outbox where published_at is null and refused is null)::int
        + (select count(*) from directory.outbox where published_at is null and refused is null)::int as events,
      (select count(*) from webhooks.due_deliveries)::int as deliveries
  `
  if (!row) throw new Error('the backlog cannot be read')
  const stream = await project.nc().jetstreamManager()
  const { num_pending, num_ack_pending } = await stream.consumers.info(streamName, consumers.webhooksFanOut.name)
  return { ...row, events: row.events + num_pending + num_ack_pending }
}

/** Waits until the project has done all that it has accepted. */
export async function drain(project: Project): Promise<void> {
  let left: Backlog | undefined
  const isDone = async () => {
    left = await backlogOf(project)
    return Object.values(left).every((count) => count === 0)
  }
  await until('everything accepted is done', isDone, drainTimeoutMs, lookEveryMs).catch((err: unknown) => {
    throw new Error(`${String(err)} Left: ${JSON.stringify(left)}`, { cause: err })
  })
}
