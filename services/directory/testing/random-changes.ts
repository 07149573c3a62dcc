import { oneOf, type Random, type Weighted } from '@app/test/faults/random.ts'
import { instanceOf, namesOf, note, numberOf, oneMade, type World } from './random-world.ts'

/** Makes one change, with chances of its own. */
export type Change = (world: World, random: Random) => Promise<unknown>

const openConversation: Change = async (world, random) => {
  const person = oneOf(random, world.people)
  const recipient = random() < 0.6 ? { phone_number: `+${numberOf(person, random)}` } : { bsuid: person.bsuid }
  note(world, await instanceOf(world, random).open(recipient))
}

const createContact: Change = async (world, random) => {
  const { wa_id, bsuid } = namesOf(oneOf(random, world.people), random)
  const body = {
    ...(wa_id !== null && { phone_number: `+${wa_id}` }),
    ...(bsuid !== null && { bsuid }),
    ...(random() < 0.5 && { name: `created ${random()}` }),
  }
  const key = random() < 0.5 ? `key ${random()}` : undefined
  const { data } = await instanceOf(world, random).create(body, key)
  world.contacts.push(data.id)
}

const updateContact: Change = async (world, random) => {
  const id = oneMade(random, world.contacts)
  const value = random()
  const body = oneOf(random, [{ name: `name ${value}` }, { metadata: { value } }, { email: `e${value}@example.com` }])
  if (id !== null) await instanceOf(world, random).update(id, body)
}

export const deleteContact: Change = async (world, random) => {
  const id = oneMade(random, world.contacts)
  if (id !== null) await instanceOf(world, random).remove(id)
}

const attachLabel: Change = async (world, random) => {
  const id = oneMade(random, world.contacts)
  if (id !== null) await instanceOf(world, random).attach(id, oneOf(random, world.labels))
}

const detachLabel: Change = async (world, random) => {
  const id = oneMade(random, world.contacts)
  if (id !== null) await instanceOf(world, random).detach(id, oneOf(random, world.labels))
}

const labelAll: Change = async (world, random) => {
  const operation = random() < 0.5 ? 'attach' : 'detach'
  const label = oneOf(random, world.labels)
  if (world.contacts.length > 0) await instanceOf(world, random).bulk(world.contacts.slice(-500), label, operation)
}

const updateConversation: Change = async (world, random) => {
  const id = oneMade(random, world.conversations)
  const assigned_to = oneOf(random, ['ana', 'bo', null])
  const status = oneOf(random, ['open', 'pending', 'resolved'] as const)
  const body = random() < 0.5 ? { assigned_to } : { status }
  if (id !== null) await instanceOf(world, random).updateConversation(id, body)
}

const labelConversation: Change = async (world, random) => {
  const id = oneMade(random, world.conversations)
  if (id !== null) await instanceOf(world, random).attachToConversation(id, oneOf(random, world.labels))
}

/** What clients and messaging ask for; a deletion is asked for by itself. */
export const changes: Weighted<Change>[] = [
  [4, openConversation],
  [4, createContact],
  [6, updateContact],
  [3, attachLabel],
  [2, detachLabel],
  [1, labelAll],
  [5, updateConversation],
  [2, labelConversation],
]

/** Of these, those that give and take names. */
export const changesOfNames: Weighted<Change>[] = [
  [4, openConversation],
  [2, createContact],
  [4, deleteContact],
]
