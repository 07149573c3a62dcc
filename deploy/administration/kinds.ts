import {
  explainAccounts,
  explainContact,
  explainConversation,
  explainCustomer,
  explainDelivery,
  explainKey,
  explainLabel,
  explainMedia,
  explainOrganization,
  explainOrganizationDeliveries,
  explainOrganizationSends,
  explainQueue,
  explainReplay,
  explainSenders,
  explainSetupLink,
  explainSubscription,
  explainTemplate,
  type Moment,
} from '@app/shared/contracts/explain.ts'
import { messageOrEventHistory, requestHistory } from './message-history.ts'
import type { Asking } from './asking.ts'

type History = (asking: Asking, id: string) => Promise<Moment[]>

interface Kind {
  name: string
  /** How its ids look. */
  ids: string
  is: RegExp
  /** Where nothing was found, when it says that there is nothing. */
  looked: string
  history: History
}

/** Asked of one service. */
const recordOf =
  (contract: typeof explainCustomer): History =>
  async ({ ask }, id) =>
    historyOf(await ask(contract, { id }))

const historyOf = (answer: { history: Moment[] } | null) => answer?.history ?? []

const messageLooked =
  'messages, ids of deleted messages, callbacks that wait, events that wait, and deliveries of the last 90 days'

/** What can be explained, by its id. */
export const kinds: Kind[] = [
  {
    name: 'a message',
    ids: 'msg_…',
    is: /^msg_\w+$/,
    looked: messageLooked,
    history: messageOrEventHistory,
  },
  {
    name: 'an event',
    ids: 'evt_…',
    is: /^evt_|^msg_\w+:|^wamid\..*:[a-z]+$/,
    looked:
      'what the services have recorded in the last four days, events that wait for their turn, and deliveries of the last 90 days',
    history: messageOrEventHistory,
  },
  {
    name: 'a request',
    ids: 'req_…',
    is: /^req_/,
    looked: 'the log of requests, which goes back 30 days, and the messages that the request made',
    history: requestHistory,
  },
  {
    name: 'a delivery',
    ids: 'wbd_…',
    is: /^wbd_/,
    looked: 'deliveries of the last 90 days',
    history: recordOf(explainDelivery),
  },
  {
    name: 'a webhook subscription',
    ids: 'wbs_…',
    is: /^wbs_/,
    looked: 'subscriptions, and the deliveries of the last 90 days to one that was deleted',
    history: recordOf(explainSubscription),
  },
  {
    name: 'a replay',
    ids: 'rpl_…',
    is: /^rpl_/,
    looked: 'replays of the last 90 days',
    history: recordOf(explainReplay),
  },
  {
    name: 'an organization',
    ids: 'org_…',
    is: /^org_/,
    looked: 'organizations, which are never deleted',
    history: organizationHistory,
  },
  {
    name: 'an API key',
    ids: 'key_…',
    is: /^key_/,
    looked: 'API keys, also revoked and expired ones',
    history: recordOf(explainKey),
  },
  {
    name: 'a customer',
    ids: 'cus_…',
    is: /^cus_/,
    looked: 'customers, which are never deleted',
    history: recordOf(explainCustomer),
  },
  {
    name: 'a setup link',
    ids: 'csl_…',
    is: /^csl_/,
    looked: 'setup links, which are never deleted',
    history: recordOf(explainSetupLink),
  },
  {
    name: 'a contact',
    ids: 'ctc_…',
    is: /^ctc_/,
    looked: 'contacts, also deleted and merged ones',
    history: recordOf(explainContact),
  },
  {
    name: 'a conversation',
    ids: 'cnv_…',
    is: /^cnv_/,
    looked: 'conversations, which are never deleted',
    history: conversationHistory,
  },
  {
    name: 'a template',
    ids: 'tmpl_…',
    is: /^tmpl_/,
    looked: 'templates; one that was gone at the platform leaves when another one of its name is made',
    history: recordOf(explainTemplate),
  },
  {
    name: 'a label',
    ids: 'lbl_…',
    is: /^lbl_/,
    looked: 'labels; a deleted one leaves when it is taken off everything',
    history: recordOf(explainLabel),
  },
  {
    name: 'a file',
    ids: 'med_…',
    is: /^med_/,
    looked: 'files; one goes with the last message that carries it, and 31 days after its upload when none does',
    history: recordOf(explainMedia),
  },
  {
    name: 'an account',
    ids: 'acc_…',
    is: /^acc_/,
    looked: 'accounts, also removed ones',
    history: numberHistory,
  },
  {
    name: 'a number or a business account, by the platform’s id',
    ids: '1065…',
    is: /^\d+$/,
    looked: 'accounts of this number or business account, also removed ones',
    history: numberHistory,
  },
  {
    name: 'a message or an event, by the platform’s id',
    ids: 'wamid.…',
    is: /^(?![a-z]{2,4}_)./,
    looked: messageLooked,
    history: messageOrEventHistory,
  },
]

/** Throws a sentence about what there is, for any other id. */
export function kindOf(id: string): Kind {
  const kind = kinds.find(({ is }) => is.test(id))
  if (kind) return kind
  throw new Error(`"${id}" is none of these: ${kinds.map(({ name, ids }) => `${name} (${ids})`).join('; ')}.`)
}

async function conversationHistory({ ask }: Asking, id: string) {
  const answers = await Promise.all([ask(explainConversation, { id }), ask(explainQueue, { conversation_id: id })])
  return answers.flatMap(historyOf)
}

async function organizationHistory({ ask }: Asking, id: string) {
  const organization = await ask(explainOrganization, { id })
  const work = await Promise.all([ask(explainOrganizationSends, { id }), ask(explainOrganizationDeliveries, { id })])
  return [organization, ...work].flatMap(historyOf)
}

async function numberHistory({ ask }: Asking, id: string) {
  const accounts = await ask(explainAccounts, { id })
  if (!accounts) return []
  const senders = await ask(explainSenders, { phone_number_ids: accounts.phone_number_ids })
  return [accounts, senders].flatMap(historyOf)
}
