import { z } from 'zod'
import { rpc } from '../api/contract.ts'
import { Parties } from './directory.ts'
import { bsuid, phoneParams, text, time, waId } from './fields.ts'

/** What the platform tells of people beside their messages. Messaging asks; every answer is the same when asked again. */

const person = { wa_id: waId.nullable(), bsuid: bsuid.nullable() }

/** The newest word of each person on marketing messages holds, in whatever order they come. */
export const recordPreferences = rpc({
  subject: 'rpc.directory.record-preferences',
  summary: 'Record whether people want marketing messages',
  params: phoneParams,
  body: z.object({
    preferences: z.array(z.object({ ...person, value: z.enum(['stop', 'resume']), at: time })).max(1000),
  }),
  answer: z.object({ recorded: z.int() }),
  errors: ['resource_not_found'],
})

/**
 * A person is known by another number or user id from now on. Done once for each `id`. Answers the contact with its
 * conversation, or nulls when nobody is known by these names.
 */
export const changeIdentity = rpc({
  subject: 'rpc.directory.change-identity',
  summary: 'Give a contact the new names of its person',
  params: phoneParams,
  body: z.object({
    /** What told of the change; unique within the number. */
    id: z.string().min(1).max(512),
    previous: z.object(person),
    current: z.object({ ...person, parent_bsuid: z.string().nullable() }),
    at: time,
  }),
  answer: z.object({
    conversation: Parties.shape.conversation.nullable(),
    contact: Parties.shape.contact.nullable(),
  }),
  errors: ['resource_not_found'],
})

/** The address book of a number's phone app. Contacts are made without an event; one that never wrote goes when it is removed there. */
export const importContacts = rpc({
  subject: 'rpc.directory.import-contacts',
  summary: "Take over changes of a phone app's address book",
  params: phoneParams,
  body: z.object({
    contacts: z
      .array(z.object({ wa_id: waId, name: text(0, 1000).nullable(), action: z.enum(['add', 'remove']), at: time }))
      .max(1000),
  }),
  answer: z.object({ applied: z.int() }),
  errors: ['resource_not_found'],
})

/** The conversations of messages that were exchanged before a number was connected: no events, no unread messages, no window. */
export const importThreads = rpc({
  subject: 'rpc.directory.import-threads',
  summary: 'Find or make the conversations of imported messages',
  params: phoneParams,
  body: z.object({
    threads: z.array(z.object({ ...person, last_message_at: time })).max(200),
  }),
  answer: z.object({
    /** In the order of `threads`. */
    threads: z.array(Parties),
  }),
  errors: ['resource_not_found'],
})
