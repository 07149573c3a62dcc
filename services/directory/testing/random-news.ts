import { between, oneOf, type Random, type Weighted } from '@app/test/faults/random.ts'
import { noteStop } from '../contacts/consume-marketing-stops.ts'
import { learnRecipients } from '../contacts/learn-recipients.ts'
import { noteSentMessages } from '../conversations/note-sent-messages.ts'
import type { Change } from './random-changes.ts'
import { instanceOf, namesOf, note, numberOf, oneMade, type Person, say, type World } from './random-world.ts'

const message: Change = async (world, random) => {
  const person = oneOf(random, world.people)
  const countsUnread = random() < 0.8
  const sentAt = new Date(Date.now() - between(random, 0, 3_600_000)).toISOString()
  const made = await instanceOf(world, random).inbound({
    ...namesOf(person, random),
    counts_unread: countsUnread,
    profile_name: random() < 0.5 ? `profile of ${person.bsuid}` : null,
    sent_at: sentAt,
  })
  const { id } = made.conversation
  const others = world.messages.get(id) ?? []
  world.messages.set(id, [...others, { sentAt, countsUnread, isRead: false }])
  note(world, made)
}

const sentMessage: Change = async (world, random) => {
  const id = oneMade(random, world.conversations)
  if (id === null) return
  const sent = { organization_id: world.organizationId, conversation_id: id, sent_at: new Date().toISOString() }
  await noteSentMessages(instanceOf(world, random).app.sql, [sent])
  if (sent.sent_at > (world.sent.get(id) ?? '')) world.sent.set(id, sent.sent_at)
}

const wayOfWriting: Change = async (world, random) => {
  const { phone, waId } = oneOf(random, world.people)
  if (phone === waId) return
  const { organizationId, phoneNumberId } = world
  const origin = { organizationId, phoneNumberId, traceparent: '' }
  const recipient = { ...origin, phoneNumber: `+${phone}`, waId, sentAt: new Date() }
  await learnRecipients(instanceOf(world, random).app, [recipient])
}

const mayMove = ({ laterPhone }: Person) => laterPhone !== null

/** Who changes their number has two, and may stop under one while the other is somebody's: of them no words are kept count of. */
const personWhoStays = ({ people }: World, random: Random) =>
  oneOf(
    random,
    people.filter((person) => !mayMove(person)),
  )

const wordOnMarketing: Change = async (world, random) => {
  const person = personWhoStays(world, random)
  const value = random() < 0.6 ? 'stop' : 'resume'
  const names = namesOf(person, random)
  await instanceOf(world, random).preferences([{ ...names, value, at: say(world, person, value) }])
}

const refusedMarketing: Change = async (world, random) => {
  const { sql } = instanceOf(world, random).app
  const person = personWhoStays(world, random)
  const recipient = `+${person.phone}`
  const [contact] = await sql<{ id: string }[]>`
    select contact_id as id from identities
    where organization_id = ${world.organizationId} and phone_number_id = ${world.phoneNumberId} and value = ${recipient}
  `
  if (!contact) return
  const stop = {
    contact_id: contact.id,
    recipient,
    at: say(world, person, 'stop'),
    phone_number_id: world.phoneNumberId,
  }
  await noteStop(sql, world.organizationId, stop)
}

const otherNumber: Change = async (world, random) => {
  const { phone, bsuid, laterPhone } = oneOf(random, world.people.filter(mayMove))
  const nameIn = () => (random() < 0.5 ? { bsuid } : {})
  const previous = { wa_id: phone, ...nameIn() }
  const current = { wa_id: laterPhone, ...nameIn() }
  await instanceOf(world, random).change(`wamid.${random()}`, previous, current)
}

const addressBook =
  (actions: readonly ('add' | 'remove')[]): Change =>
  async (world, random) => {
    const entries = Array.from({ length: 5 }, () => ({
      wa_id: numberOf(oneOf(random, world.people), random),
      name: random() < 0.5 ? 'Of the book' : null,
      action: oneOf(random, actions),
      at: new Date().toISOString(),
    }))
    await instanceOf(world, random).contacts(entries)
  }

const threadOfThePhone: Change = async (world, random) => {
  const person = oneOf(random, world.people)
  const names = { wa_id: numberOf(person, random), bsuid: random() < 0.5 ? person.bsuid : null }
  await instanceOf(world, random).threads([{ ...names, last_message_at: '2026-03-01T12:00:00.000Z' }])
}

/** What the platform tells of people and messages; of the address book only what adds to it. */
export const news: Weighted<Change>[] = [
  [10, message],
  [3, sentMessage],
  [1, wayOfWriting],
  [3, wordOnMarketing],
  [1, refusedMarketing],
  [1, otherNumber],
  [1, addressBook(['add'])],
  [1, threadOfThePhone],
]

export const removingAddressBook: Change = addressBook(['add', 'remove'])

/** Of these, those that give, take and merge names, so that they meet more often, and messages to those who are merged. */
export const newsOfNames: Weighted<Change>[] = [
  [3, message],
  [4, sentMessage],
  [1, wayOfWriting],
  [6, otherNumber],
  [1, addressBook(['add', 'remove'])],
]
