import { z } from 'zod'
import { createBoundedMap } from '../bounded-map.ts'
import type { Recipient } from './recipient.ts'

/** Somebody who wrote to a number: what the platform then says of them, and until when free-form answers may go. */
export const Person = z.strictObject({
  waId: z.string().optional(),
  userId: z.string().optional(),
  profile: z.record(z.string(), z.unknown()),
  wroteAt: z.number(),
})
export type Person = z.output<typeof Person>

/** A person under one of their keys. */
export const PersonEntry = z.tuple([z.string(), Person])

const windowMs = 24 * 3_600_000
const remembered = 200_000
/** Rewriting all of them each second would cost more than the windows of long ago are worth. */
const persisted = 10_000

export type People = ReturnType<typeof createPeople>

export function createPeople(known: z.output<typeof PersonEntry>[]) {
  const people = createBoundedMap<Person>(remembered)
  for (const [key, person] of known) people.set(key, person)

  const keyOf = (phoneNumberId: string, id: string) => `${phoneNumberId} ${id}`

  function find(phoneNumberId: string, { waId, userId }: Pick<Recipient, 'waId' | 'userId'>) {
    const byPhone = waId === undefined ? undefined : people.get(keyOf(phoneNumberId, waId))
    if (byPhone || userId === undefined) return byPhone
    return people.get(keyOf(phoneNumberId, userId))
  }

  return {
    find,
    /** Under both ids, so that whoever wrote with a phone may be answered by the user id. A late message does not close a window. */
    remember: (phoneNumberId: string, person: Person) => {
      const wroteAt = Math.max(person.wroteAt, find(phoneNumberId, person)?.wroteAt ?? 0)
      for (const id of [person.waId, person.userId])
        if (id !== undefined) people.set(keyOf(phoneNumberId, id), { ...person, wroteAt })
    },
    windowIsOpen: (phoneNumberId: string, recipient: Recipient, now: number) => {
      const person = find(phoneNumberId, recipient)
      return person !== undefined && now < person.wroteAt + windowMs
    },
    newest: () => [...people.entries()].slice(-persisted),
  }
}
