/** One request of a client, and what came of it. */
export interface Call {
  tenant: string
  method: string
  path: string
  key: string | null
  startedAt: number
  endedAt: number
  /** Null: the connection broke, or nothing came in time. */
  status: number | null
  text: string
  retryAfter: string | null
  /** How the answer differs from what the OpenAPI promises. */
  misfit: string | null
}

/** No answer came, or one that says that the fault is ours. */
export const hasFailed = ({ status }: Pick<Call, 'status'>): boolean => status === null || status >= 500

/** A send that was answered with success. */
export interface AcceptedSend {
  id: string
  tenant: string
  phone: string
  conversation: string
  /** When its first request left. */
  startedAt: number
  acceptedAt: number
}

/** What the platform accepted, in its order. */
export interface UpstreamSend {
  id: string
  messageId: string
  phone: string
  at: number
}

/** A message as a GET showed it. */
export interface Reading {
  messageId: string
  startedAt: number
  endedAt: number
  status: string
  /** Of its error. */
  code: string | null
}

export interface Delivery {
  subscription: string
  /** Its `X-Svc-Delivery-Id`. */
  id: string
  eventId: string
  type: string
  raw: string
}

export interface Subscription {
  id: string
  tenant: string
  events: string[]
  /** Null: all. */
  phones: string[] | null
  /** When its creation had been answered. */
  activeFrom: number
}

/** An event that must have been told, known by its id or by a word in its payload. */
export interface ExpectedEvent {
  tenant: string
  /** Null: it has none, and passes every filter by number. */
  phone: string | null
  type: string
  /** It did not happen before that. */
  notBefore: number
  eventId?: string
  word?: string
  /** Those of one line come in the order in which they are expected. */
  line?: string
}

/** What happened so many times, and names nothing by which one of them is told from another. */
export interface Tally {
  tenant: string
  phone: string
  type: string
  word: string
  times: number
}

/** What somebody sent, by its hash, and what was served of it. */
export interface SentFile {
  messageId: string
  posted: string
  served: string | null
}

/** A customer of a tenant, as it was left. */
export interface Customer {
  tenant: string
  id: string
  name: string
  status: string
}

/** What was made, and is listed at the end: each one once, as it was left. */
export interface Shelf {
  name: string
  made: string[]
  listed: string[]
}

export interface Tenant {
  id: string
  /** What nobody else may see: ids, numbers, keys, words in its texts. */
  own: string[]
}

/** What the lists say of a number at the end, beside what was done to it. */
export interface Ledger {
  phone: string
  outbound: Array<{ id: string; status: string }>
  /** The platform's ids. */
  inboundPosted: string[]
  inboundListed: string[]
  /** Where the file of an inbound message is served, by the message's id. */
  media: Array<[string, string]>
  /** Of each person who wrote: what the conversation counts as unread, and what was written since the last receipt. */
  unread: Array<{ person: string; shown: number; written: number }>
}

export type History = ReturnType<typeof newHistory>

/** Everything that was done and seen in a run, for the checker. */
export const newHistory = () => ({
  tenants: [] as Tenant[],
  subscriptions: [] as Subscription[],
  calls: [] as Call[],
  accepted: [] as AcceptedSend[],
  upstream: [] as UpstreamSend[],
  /** In the course of the run. */
  readings: [] as Reading[],
  /** The last reading of each message. */
  endings: new Map<string, Reading>(),
  deliveries: [] as Delivery[],
  expected: [] as ExpectedEvent[],
  ledgers: [] as Ledger[],
  files: [] as SentFile[],
  tallies: [] as Tally[],
  customers: [] as Customer[],
  shelves: [] as Shelf[],
  /** What a client found that no client should: a refusal without a reason, no answer at all. */
  complaints: [] as string[],
})
