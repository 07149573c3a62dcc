import { contractModules } from '@app/gateway/contracts.ts'
import { type Event, isEvent, isNotice, isRpc, type Notice, type Rpc } from '@app/shared/api/contract.ts'
import {
  noteRead,
  openConversation,
  partiesChanged,
  putAccount,
  recordInbound,
} from '@app/shared/contracts/directory.ts'
import {
  changeIdentity,
  importContacts,
  importThreads,
  recordPreferences,
} from '@app/shared/contracts/directory-changes.ts'
import { findMedia, openUpload } from '@app/shared/contracts/media.ts'
import { acceptCallback, acceptCallbacks, putSender } from '@app/shared/contracts/messaging.ts'
import { beginSetup, completeSetup, getSetup } from '@app/shared/contracts/onboarding.ts'
import {
  authenticateKey,
  findAccount,
  findAccounts,
  listAccounts,
  listTeams,
  recordCallBatch,
  recordCalls,
} from '@app/shared/contracts/platform.ts'
import { inboxOf } from '@app/shared/bus/inbox.ts'
import { inWorkSubject } from '@app/shared/bus/lost-questions.ts'
import { handledRangesOf } from '@app/shared/events/handled-ranges.ts'
import { auditedBy, consumers, type Consumer, ownerOf } from '@app/shared/events/provision.ts'
import { streamName } from '@app/shared/events/stream.ts'
import { type ServiceName, serviceNames } from '../stack/options.ts'

/** The services, and the operator: who provisions, administers and looks. */
export const natsUsers = [...serviceNames, 'deploy'] as const
export type NatsUser = (typeof natsUsers)[number]

/** Subjects that a user may publish to and subscribe to; it may do nothing else. */
export interface Permissions {
  publish: string[]
  subscribe: string[]
}

const contracts: unknown[] = Object.values(contractModules).flatMap((module) => Object.values(module))
const endpoints = contracts.filter((contract): contract is Rpc => isRpc(contract) && contract.http !== undefined)
const events = contracts.filter((contract): contract is Event => isEvent(contract))
const notices = contracts.filter((contract): contract is Notice => isNotice(contract))

/** Of the services that have consumers of its events, whether these have handled them. */
const handledRanges = (service: ServiceName) =>
  [...new Set(auditedBy(service).map(ownerOf))].filter((owner) => owner !== service).map(handledRangesOf)

/** What each service asks of others. A test holds it against the services' code. */
export const asks: Record<ServiceName, Rpc[]> = {
  gateway: [
    ...endpoints,
    authenticateKey,
    findAccount,
    recordCalls,
    acceptCallbacks,
    // Gateways of the version before, while they are replaced.
    acceptCallback,
    recordCallBatch,
    openUpload,
    findMedia,
    getSetup,
    beginSetup,
    completeSetup,
  ],
  messaging: [
    openConversation,
    recordInbound,
    noteRead,
    recordPreferences,
    changeIdentity,
    importContacts,
    importThreads,
    ...handledRanges('messaging'),
  ],
  directory: [listTeams, ...handledRanges('directory')],
  platform: [putSender, putAccount, ...handledRanges('platform')],
  webhooks: [
    findAccounts,
    // Platform of the version before, while it is replaced.
    listAccounts,
  ],
}

/** The notices that each service hears. A test holds it against the services' code. */
export const hears: Record<ServiceName, Notice[]> = {
  gateway: [],
  messaging: [partiesChanged],
  directory: [],
  platform: [],
  webhooks: [],
}

/**
 * A service answers its own questions, tells its own events and notices, hears its own consumers, and asks what it needs. It may
 * write to the inboxes of those that ask it, where an answer counts only with the token of a question that it was asked.
 */
export function permissionsOf(user: NatsUser): Permissions {
  if (user === 'deploy') {
    return {
      publish: ['$JS.API.>', '$SRV.>', 'event.*.*', 'rpc.*.*'],
      subscribe: [`${inboxOf(user)}.>`],
    }
  }
  const own = Object.values<Consumer>(consumers).filter(({ name }) => name.startsWith(`${user}-`))
  const asked = asks[user].map(({ subject }) => subject)
  const askers = serviceNames.filter((name) => asks[name].some(({ subject }) => isOf(user, subject)))
  const tells = events.some(({ subject }) => isOf(user, subject))
  return {
    publish: [
      ...new Set(asked),
      ...new Set(asked.map((subject) => inWorkSubject(subject.split('.')[1] ?? ''))),
      ...(tells ? [`event.${user}.*`] : []),
      ...notices.map(({ subject }) => subject).filter((subject) => isOf(user, subject)),
      ...(user === 'gateway' ? [] : [...askers, 'deploy']).map((name) => `${inboxOf(name)}.>`),
      lookSubject,
      ...(tells ? streamSubjects : []),
      ...own.flatMap(subjectsOf),
    ].toSorted(),
    subscribe: [
      `${inboxOf(user)}.>`,
      ...(user === 'gateway' ? [] : [`rpc.${user}.*`, '$SRV.*', `$SRV.*.${user}`, `$SRV.*.${user}.*`]),
      ...hears[user].map(({ subject }) => subject),
    ],
  }
}

const isOf = (service: string, subject: string) => subject.split('.')[1] === service

/** Whoever is connected looks whether its nats-server still has the others. */
const lookSubject = `$JS.API.STREAM.INFO.${streamName}`

/** Who publishes makes a lost stream anew, and looks whether it has room: what its consumers have not handled. */
const streamSubjects = ['STREAM.CREATE', 'CONSUMER.LIST'].map((ask) => `$JS.API.${ask}.${streamName}`)

/** A consumer is looked at, pulled from, acknowledged, and made anew when the store was lost. */
const subjectsOf = ({ name, subject }: Consumer) => [
  `$JS.API.CONSUMER.INFO.${streamName}.${name}`,
  `$JS.API.CONSUMER.MSG.NEXT.${streamName}.${name}`,
  `$JS.API.CONSUMER.CREATE.${streamName}.${name}.${subject}`,
  `$JS.ACK.${streamName}.${name}.>`,
]
