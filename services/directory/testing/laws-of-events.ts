import { contactCreated, contactIdentityUpdated, contactUpdated } from '@app/shared/contracts/contacts.ts'
import { conversationAssigned } from '@app/shared/contracts/conversations.ts'
import type { z } from 'zod'
import { eventsOf } from './app.ts'
import type { World } from './random-world.ts'

type Facts = z.output<typeof contactCreated.data>['contact']
type Updated = z.output<typeof contactUpdated.data>['contact']
type IdentityUpdated = z.output<typeof contactIdentityUpdated.data>
type Assigned = z.output<typeof conversationAssigned.data>

/** What a subscriber believes that has every event, and what of them did not fit what it believed. */
interface Subscriber {
  /** As the last event showed it; null: of contacts of the address book the first event may be of their names. */
  facts: Map<string, Facts | null>
  numbers: Map<string, string | null>
  bsuids: Map<string, string | null>
  assignees: Map<string, string | null>
  wrong: string[]
}

/** What is wrong in the events, taken in their order, and beside what is in the tables in the end. */
export async function wrongInEvents(world: World): Promise<string[]> {
  const subscriber: Subscriber = {
    facts: new Map(),
    numbers: new Map(),
    bsuids: new Map(),
    assignees: new Map(),
    wrong: [],
  }
  for (const { type, data } of await eventsOf(world.directory, world.organizationId)) take(subscriber, type, data)
  await compareContacts(subscriber, world)
  await compareConversations(subscriber, world)
  return subscriber.wrong
}

function take(subscriber: Subscriber, type: string, data: unknown) {
  if (type === 'contact.created') takeCreated(subscriber, contactCreated.data.parse(data).contact)
  if (type === 'contact.updated') takeUpdated(subscriber, contactUpdated.data.parse(data).contact)
  if (type === 'contact.identity_updated') takeIdentity(subscriber, contactIdentityUpdated.data.parse(data))
  if (type === 'conversation.assigned') takeAssigned(subscriber, conversationAssigned.data.parse(data))
}

function takeCreated({ facts, numbers, wrong }: Subscriber, contact: Facts) {
  if (numbers.has(contact.id)) wrong.push(`created after it was told of: ${JSON.stringify(contact)}`)
  facts.set(contact.id, contact)
  numbers.set(contact.id, contact.phone_number)
}

function takeUpdated({ facts, numbers, wrong }: Subscriber, contact: Updated) {
  const before = facts.get(contact.id)
  const number = numbers.get(contact.id)
  if (number !== undefined && number !== contact.phone_number)
    wrong.push(`a number that changed in silence from ${number}: ${JSON.stringify(contact)}`)
  if (before) wrong.push(...wrongUpdate(before, contact))
  facts.set(contact.id, contact)
  numbers.set(contact.id, contact.phone_number)
}

function wrongUpdate(before: Facts, after: Updated): string[] {
  const shown = `${JSON.stringify(before)} became ${JSON.stringify(after)}`
  const wrong = Date.parse(before.updated_at) > Date.parse(after.updated_at) ? [`went back in time: ${shown}`] : []
  for (const field of ['name', 'email', 'metadata'] as const) {
    const isOther = JSON.stringify(before[field]) !== JSON.stringify(after[field])
    const isSaid = after.changed_fields.includes(field)
    // The address book names who has no name, and tells nobody.
    const mayBeSilent = field === 'name' && before.name === null
    if (isOther !== isSaid && !mayBeSilent) wrong.push(`changed_fields says something else of ${field}: ${shown}`)
  }
  return wrong
}

function takeIdentity({ facts, numbers, bsuids, wrong }: Subscriber, { contact, previous, current }: IdentityUpdated) {
  const number = numbers.get(contact.id)
  const bsuid = bsuids.get(contact.id)
  const shown = JSON.stringify({ id: contact.id, previous, current })
  if (number !== undefined && number !== previous.phone_number) wrong.push(`was ${number} before: ${shown}`)
  // The first message of a contact may bring its user id in silence.
  if (bsuid !== undefined && bsuid !== null && bsuid !== previous.bsuid) wrong.push(`was ${bsuid} before: ${shown}`)
  if (!facts.has(contact.id)) facts.set(contact.id, null)
  numbers.set(contact.id, current.phone_number)
  bsuids.set(contact.id, current.bsuid)
}

function takeAssigned({ assignees, wrong }: Subscriber, { conversation, assignee }: Assigned) {
  const before = assignees.get(conversation.id) ?? null
  const shown = JSON.stringify({ id: conversation.id, ...assignee })
  if (before !== assignee.previous_user_id) wrong.push(`was assigned to ${before} before: ${shown}`)
  if (assignee.previous_user_id === assignee.user_id) wrong.push(`assigned to the same: ${shown}`)
  assignees.set(conversation.id, assignee.user_id)
}

async function compareContacts({ facts, numbers, wrong }: Subscriber, { directory, organizationId }: World) {
  const rows = await directory.sql<
    { id: string; phoneNumber: string | null; name: string | null; email: string | null; metadata: unknown }[]
  >`
    select id, phone_number, name, email, metadata from contacts
    where organization_id = ${organizationId} and deleted_at is null
  `
  for (const row of rows) {
    const told = facts.get(row.id)
    const number = numbers.get(row.id)
    const isOther =
      (number !== undefined && number !== row.phoneNumber) ||
      (told &&
        (told.email !== row.email ||
          JSON.stringify(told.metadata) !== JSON.stringify(row.metadata) ||
          (told.name !== null && told.name !== row.name)))
    if (isOther) wrong.push(`${JSON.stringify(row)} was told as ${number} ${JSON.stringify(told)}`)
  }
}

async function compareConversations({ assignees, wrong }: Subscriber, { directory, organizationId }: World) {
  const rows = await directory.sql<{ id: string; assignedTo: string | null }[]>`
    select id, assigned_to from conversations where organization_id = ${organizationId} and merged_into is null
  `
  for (const { id, assignedTo } of rows) {
    const told = assignees.get(id) ?? null
    if (told !== assignedTo) wrong.push(`${id} is assigned to ${assignedTo}, and was told as ${told}`)
  }
}
