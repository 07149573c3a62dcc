import type fc from 'fast-check'
import { expect } from 'vitest'
import type { Answer, Json } from '../../journeys/client.ts'
import type { Receiver } from '../../journeys/receiver.ts'
import type { Tenant } from '../../journeys/tenant.ts'

/** What we believe the API to hold. Resources are as they are shown, without their times. */
export interface Model {
  people: Person[]
  /** By slot; null where there is none. */
  labels: Json[]
  customers: Customer[]
  /** Events that must have been told, each once: type and facts. */
  events: string[]
  isPaused: boolean
  secrets: { id: string; isLasting: boolean }[]
  /** Every secret that ever was. */
  allSecrets: string[]
}

/** Somebody who has a phone, whether we know of it or not. */
interface Person {
  phone: string
  /** Null while we know of none. */
  contact: Json
  labelIds: Set<string>
  /** When a contact of theirs was deleted last, in epoch milliseconds. */
  deletedAt: number
  conversation: Conversation | null
}

interface Conversation {
  shown: Json
  /** The platform's ids of what came in, oldest first, and how many of them were read. */
  inbound: string[]
  read: number
  /** What was said, in both directions. */
  texts: string[]
}

export interface Customer {
  /** Null while there is none. */
  shown: Json
  links: Json[]
}

export interface Real {
  tenant: Tenant
  phone: string
  subscriptionId: string
  receiver: Receiver
  inbound: (from: string, text: string, name: string) => Promise<string>
}

export type Command = fc.AsyncCommand<Model, Real>

/** A step that may be taken when `check` holds of the model. */
export const command = (
  name: string,
  run: (model: Model, real: Real) => Promise<void>,
  check: (model: Readonly<Model>) => boolean = () => true,
): Command => ({ check: (model) => check(model), run, toString: () => name })

const times = new Set(['updated_at', 'last_message_at', 'last_inbound_at'])

/** The resource without the times that move with what happens. */
export const shownOf = (resource: Json): Json =>
  Object.fromEntries(Object.entries(resource as object).filter(([name]) => !times.has(name)))

export const inOrder = (texts: string[]): string[] => texts.toSorted()

/** What an answer must be: the status, and the resource, or the code of the failure. */
export function expectAnswer({ status, body }: Answer, expectedStatus: number, expected: Json): void {
  const got = status < 300 ? shownOf(body.data) : body.error.code
  expect({ status, got }).toEqual({ status: expectedStatus, got: expected })
}

/** An event as text, with its facts in one order. */
export const told = (type: string, facts: Json): string => `${type} ${JSON.stringify(sorted(facts))}`

function sorted(value: Json): Json {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.keys(value)
      .toSorted()
      .map((key) => [key, sorted(value[key])]),
  )
}

/** A delivery as text, with the facts that the model foretells. */
export function toldBy({ headers, body }: Receiver['deliveries'][number]): string {
  const type = headers['x-svc-event'] ?? ''
  const { data } = body
  switch (type) {
    case 'contact.created':
    case 'contact.updated':
      return told(type, contactFacts(data.contact, data.contact.changed_fields))
    case 'conversation.assigned':
      return told(type, { id: data.conversation.id, status: data.conversation.status, ...data.assignee, team_id: 0 })
    case 'conversation.closed':
      return told(type, { id: data.conversation.id })
    case 'customer.created':
    case 'customer.updated':
    case 'customer.archived':
      return told(type, customerFacts(data.customer))
    case 'customer.setup_link.created':
      return told(type, { customer: data.customer_id, link: data.setup_link.id })
    case 'message.sent':
      return told(type, { id: data.message.id })
    case 'message.status': {
      const [status] = body.entry[0].changes[0].value.statuses
      return told(type, { id: status.id, status: status.status })
    }
    default:
      return told(type, { id: headers['x-svc-event-id'] })
  }
}

/** A change of labels may be told a little later, when the rest is different again. */
export function contactFacts({ id, name, email, metadata, phone_number }: Json, changed?: string[]): Json {
  if (changed?.join() === 'labels') return { id, changed }
  return { id, name, email, metadata, phone_number, ...(changed && { changed }) }
}

export const customerFacts = ({ id, name, status, metadata }: Json): Json => ({ id, name, status, metadata })
