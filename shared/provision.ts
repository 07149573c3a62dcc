import { AckPolicy, DeliverPolicy, DiscardPolicy, type NatsConnection, RetentionPolicy, StorageType } from 'nats'
import { streamConfig, streamName } from './stream.ts'

/** A durable pull consumer, shared by all instances of the service that it is named after. */
interface Consumer {
  name: string
  subject: string
  /** 1: strict order over all instances, for rare events. */
  maxAckPending?: number
}

/** Every consumer of the stream. */
export const consumers = {
  webhooksFanOut: { name: 'webhooks-fan-out', subject: 'event.>' },
  /** Events with a line (those of a customer) are fanned out one by one, so that instances cannot swap them. */
  webhooksInOrder: { name: 'webhooks-in-order', subject: 'event.platform.>', maxAckPending: 1 },
  messagingAccounts: { name: 'messaging-accounts', subject: 'event.platform.account-changed' },
  directoryAccounts: { name: 'directory-accounts', subject: 'event.platform.account-changed' },
  directoryTeams: { name: 'directory-teams', subject: 'event.platform.team-changed' },
  directoryMembers: { name: 'directory-members', subject: 'event.platform.member-changed' },
  platformAccountReports: { name: 'platform-account-reports', subject: 'event.messaging.account-reported' },
  directoryMessagesRead: { name: 'directory-messages-read', subject: 'event.messaging.messages-read' },
  directoryMarketingStops: { name: 'directory-marketing-stops', subject: 'event.messaging.marketing-stopped' },
  directorySentMessages: { name: 'directory-sent-messages', subject: 'event.messaging.message-sent' },
} as const satisfies Record<string, Consumer>

/** How long a consumer may keep a message without a word; handlers that wait say `working` before. */
export const ackWaitMs = 30_000

/** Declares the stream and its consumers, as often as it is called, and checks that the server has what was declared. */
export async function provision(nc: NatsConnection, { replicas = 1 } = {}): Promise<void> {
  const jsm = await nc.jetstreamManager()
  const stream = {
    ...streamConfig(replicas),
    retention: RetentionPolicy.Limits,
    storage: StorageType.File,
    discard: DiscardPolicy.Old,
  }
  const there = await jsm.streams.info(streamName).catch(() => null)
  const { config } = there ? await jsm.streams.update(streamName, stream) : await jsm.streams.add(stream)
  assertDeclared(`stream ${streamName}`, stream, config)
  for (const { name, subject, maxAckPending = 4096 } of Object.values<Consumer>(consumers)) {
    const consumer = {
      durable_name: name,
      filter_subject: subject,
      ack_policy: AckPolicy.Explicit,
      deliver_policy: DeliverPolicy.All,
      ack_wait: ackWaitMs * 1e6,
      max_deliver: -1,
      max_ack_pending: maxAckPending,
    }
    const info = await jsm.consumers.add(streamName, consumer)
    assertDeclared(`consumer ${name}`, consumer, info.config)
  }
}

function assertDeclared(what: string, declared: Record<string, unknown>, there: object) {
  for (const [field, value] of Object.entries(declared)) {
    const actual: unknown = Reflect.get(there, field)
    if (JSON.stringify(actual) !== JSON.stringify(value)) {
      throw new Error(
        `${what}: the server has ${field} ${JSON.stringify(actual)}, declared is ${JSON.stringify(value)}`,
      )
    }
  }
}
