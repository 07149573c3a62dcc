import { type AccountState, statesOfOrganization } from '../accounts/account-states.ts'
import type { App } from '../app.ts'
import type { CustomerStatus } from '../customers/customers.ts'
import { eventsOf } from './app.ts'

export interface CustomerSeen {
  id: string
  name: string
  status: CustomerStatus
  metadata: Record<string, unknown>
}

/** What happened to rivals, and how it ended. */
export interface RivalHistory {
  /** What events told of numbers, in their order. */
  states: AccountState[]
  /** What messaging and directory were told of numbers before their events. */
  passedOn: { messaging: AccountState[]; directory: AccountState[] }
  /** Those for subscribers, in the order of each organization. */
  events: { type: string; data: Record<string, unknown> }[]
  /** As the database has it in the end. */
  end: { states: AccountState[]; customers: CustomerSeen[]; consumedLinkIds: string[] }
  errors: string[]
  stuck: string[]
}

/** Answers what breaks it. */
export type Law = (history: RivalHistory) => string[]

type Read = Pick<RivalHistory, 'states' | 'events' | 'end'>

export async function historyOf(app: App, organizationIds: string[]): Promise<Read> {
  const { sql } = app
  const told = await sql<{ state: AccountState }[]>`
    select convert_from(payload, 'UTF8')::json as state from outbox
    where headers ->> 'organization' = any(${organizationIds}::text[]) and subject = 'event.platform.account-changed'
    order by seq
  `
  const consumed = await sql<{ id: string }[]>`
    select id from setup_links where organization_id = any(${organizationIds}::text[]) and status = 'consumed'
  `
  const customers = await sql<CustomerSeen[]>`
    select id, name, status, metadata from customers where organization_id = any(${organizationIds}::text[])
  `
  const events = await Promise.all(organizationIds.map((id) => eventsOf(app, id)))
  const states = await Promise.all(organizationIds.map((id) => sql.begin((tx) => statesOfOrganization(tx, id))))
  return {
    states: told.map(({ state }) => state),
    events: events.flat(),
    end: { states: states.flat(), customers: [...customers], consumedLinkIds: consumed.map(({ id }) => id) },
  }
}
