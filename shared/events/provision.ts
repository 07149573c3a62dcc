import {
  AckPolicy,
  DeliverPolicy,
  DiscardPolicy,
  type JetStreamManager,
  type NatsConnection,
  NatsError,
  RetentionPolicy,
  StorageType,
  type StreamInfo,
} from 'nats'
import type { ServiceName } from '../service/service.ts'
import type { EventService } from './handled-ranges.ts'
import { streamBytes, streamConfig, streamName } from './stream.ts'

/** A durable pull consumer, shared by all instances of the service that it is named after. */
export interface Consumer {
  name: string
  subject: string
  /** 1: strict order over all instances, for rare events. */
  maxAckPending?: number
  /** Instead of `ackWaitMs`, where all other events wait behind a lost ack. */
  ackWaitMs?: number
  /** Nobody asks whether it has handled all (audit.ts). */
  unaudited?: true
}

/** Every consumer of the stream. */
export const consumers = {
  webhooksFanOut: { name: 'webhooks-fan-out', subject: 'event.>' },
  /** Events with a line (those of a customer) are fanned out one by one, so that instances cannot swap them. */
  webhooksInOrder: { name: 'webhooks-in-order', subject: 'event.platform.>', maxAckPending: 1, ackWaitMs: 3_000 },
  messagingAccounts: { name: 'messaging-accounts', subject: 'event.platform.account-changed' },
  directoryAccounts: { name: 'directory-accounts', subject: 'event.platform.account-changed' },
  directoryTeams: { name: 'directory-teams', subject: 'event.platform.team-changed' },
  directoryMembers: { name: 'directory-members', subject: 'event.platform.member-changed' },
  platformAccountReports: { name: 'platform-account-reports', subject: 'event.messaging.account-reported' },
  directoryMessagesRead: { name: 'directory-messages-read', subject: 'event.messaging.messages-read' },
  directoryMarketingStops: { name: 'directory-marketing-stops', subject: 'event.messaging.marketing-stopped' },
  /** There are many, with gaps between their numbers, so that notes of them would be long. What the stream loses, webhooksFanOut misses, too. */
  directorySentMessages: {
    name: 'directory-sent-messages',
    subject: 'event.messaging.message-sent',
    unaudited: true,
  },
} as const satisfies Record<string, Consumer>

/** Those that get events of the service: their subjects are `event.>`, `event.<service>.>` or `event.<service>.<words>`. */
export const consumersOf = (service: ServiceName): Consumer[] =>
  Object.values<Consumer>(consumers).filter(({ subject }) => subject === 'event.>' || subject.split('.')[1] === service)

/** Those of them that are asked what they have handled. */
export const auditedBy = (service: ServiceName): Consumer[] =>
  consumersOf(service).filter(({ unaudited }) => !unaudited)

/** The service whose consumer it is. */
export const ownerOf = ({ name }: Consumer): EventService => name.split('-')[0] as EventService

/** Others may have consumers of the stream, too. */
export const isOurs = (name: string): boolean => Object.values<Consumer>(consumers).some((one) => one.name === name)

/**
 * How long a consumer may keep a message without a word; handlers that wait say `working` before. What an instance that died had in hand
 * goes to another within ten seconds.
 */
export const ackWaitMs = 9_000

/**
 * Declares the stream and its consumers, as often as it is called, and checks that the server has what was declared. It is
 * the operator's: a service may make anew what is lost (`restoreStream`, `restoreConsumer`), and change nothing. A stream that is there has
 * as many copies as before, unless told otherwise.
 */
export async function provision(
  nc: NatsConnection,
  { replicas: wanted, maxBytes = streamBytes }: { replicas?: number | undefined; maxBytes?: number } = {},
): Promise<void> {
  const jsm = await managerOf(nc)
  const there = await orNull(jsm.streams.info(streamName))
  const replicas = wanted ?? there?.config.num_replicas ?? 1
  const stream = { ...declaredStream(replicas), max_bytes: maxBytes, ...unlimited }
  if (there) refuseStranger(there.config.subjects, stream.subjects)
  // From 2.10 on a server by itself tells its stream's cluster, too, but without a name.
  if (replicas > 1 && (there ? !there.cluster?.name : !nc.info?.cluster)) refuseCopies(replicas)
  const { config } = there ? await asDeclared(jsm, there, stream) : await jsm.streams.add(stream)
  assertDeclared(`stream ${streamName}`, stream, config)
  for (const each of Object.values<Consumer>(consumers)) {
    const consumer = { ...declaredConsumer(each), ...whole }
    const existing = await orNull(jsm.consumers.info(streamName, each.name))
    if (!existing) await jsm.consumers.add(streamName, consumer)
    else if (differenceOf(consumer, existing.config) !== null)
      await jsm.consumers.update(streamName, each.name, consumer)
    // Asked anew: nats-server 2.9 answers the first change after its start with what was before.
    const info = await jsm.consumers.info(streamName, each.name)
    assertDeclared(`consumer ${each.name}`, consumer, info.config)
  }
}

/** Its name is one that others choose, too. */
function refuseStranger(subjects: string[], ours: string[]) {
  if (ours.some((subject) => subjects.includes(subject))) return
  throw new Error(
    `The stream ${streamName} of this server is of another program: it holds ${subjects.join(', ')}. ` +
      'Give the services a nats-server, or an account, of their own.',
  )
}

/** One server alone takes the change without a word, and at each of its next starts drops the stream. */
function refuseCopies(replicas: number) {
  throw new Error(
    `NATS_REPLICAS is ${replicas}, and this nats-server is in no cluster. Leave it at 1, or give the server the others.`,
  )
}

/**
 * While a cluster of nats-servers elects who leads, nobody answers, and then at once: whoever asks again soon loses no
 * seconds of it.
 */
export const askAgainMs = 1_000

/** The stream as it is; made anew when the server has none. */
export async function restoreStream(nc: NatsConnection, replicas: number): Promise<StreamInfo> {
  const { streams } = await managerOf(nc, askAgainMs)
  return (await orNull(streams.info(streamName))) ?? streams.add(declaredStream(replicas))
}

/** Makes the consumer anew when the server has none of this name, and its stream too. */
export async function restoreConsumer(nc: NatsConnection, name: string, replicas: number): Promise<void> {
  await restoreStream(nc, replicas)
  const jsm = await managerOf(nc, askAgainMs)
  const declared = Object.values<Consumer>(consumers).find((each) => each.name === name)
  if (!declared || (await orNull(jsm.consumers.info(streamName, name)))) return
  await jsm.consumers.add(streamName, declaredConsumer(declared))
}

/** Without the client's question for the whole account, which no service may ask. */
export const managerOf = (nc: NatsConnection, timeout = 5_000) => nc.jetstreamManager({ checkAPI: false, timeout })

async function orNull<T>(info: Promise<T>): Promise<T | null> {
  try {
    return await info
  } catch (err) {
    if (err instanceof NatsError && err.api_error?.code === 404) return null
    throw err
  }
}

const declaredStream = (replicas: number) => ({
  ...streamConfig(replicas),
  retention: RetentionPolicy.Limits,
  storage: StorageType.File,
  discard: DiscardPolicy.Old,
})

/** What a consumer may have in hand. */
export const maxAckPending = 4096

const declaredConsumer = ({
  name,
  subject,
  maxAckPending: inHand = maxAckPending,
  ackWaitMs: waitMs = ackWaitMs,
}: Consumer) => ({
  durable_name: name,
  filter_subject: subject,
  ack_policy: AckPolicy.Explicit,
  deliver_policy: DeliverPolicy.All,
  ack_wait: waitMs * 1e6,
  max_deliver: -1,
  max_ack_pending: inHand,
})

/**
 * What somebody may have set besides, and what takes events away, or hides them: an update leaves all that it does not name. Where they
 * lie, how they are compressed, and to whom else they go, is the operator's.
 */
const unlimited = {
  max_msgs: -1,
  max_msgs_per_subject: -1,
  max_msg_size: -1,
  ...unset('discard_new_per_subject', 'no_ack', 'subject_transform'),
}
const whole = {
  ...unset('filter_subjects', 'backoff', 'headers_only', 'inactive_threshold'),
  ...unset('max_batch', 'max_bytes', 'max_expires'),
}

function unset(...fields: string[]): Record<string, undefined> {
  return Object.fromEntries(fields.map((field) => [field, undefined]))
}

/**
 * Updated only where it differs: at each update nats-server 2.9 notes that the stream was made when the server started, and says so after
 * its next start. Services that remember another time would take the stream for a new one, and fill it again.
 */
async function asDeclared(jsm: JetStreamManager, there: StreamInfo, stream: ReturnType<typeof declaredStream>) {
  return differenceOf(stream, there.config) === null ? there : jsm.streams.update(streamName, stream)
}

function assertDeclared(what: string, declared: object, there: object) {
  const difference = differenceOf(declared, there)
  if (difference !== null) throw new Error(`${what}: ${difference}`)
}

/** The first field that the server has otherwise than declared; null where there is none. */
function differenceOf(declared: object, there: object): string | null {
  const [first] = Object.entries(declared).flatMap(([field, value]) => {
    const actual = JSON.stringify(Reflect.get(there, field))
    const wanted = JSON.stringify(value)
    return actual === wanted ? [] : `the server has ${field} ${actual}, declared is ${wanted}`
  })
  return first ?? null
}
