import type { recordInbound } from '@app/shared/contracts/directory.ts'
import type { z } from 'zod'

/** What is known of a person, and what a message may tell of one. */
export interface Profile {
  /** E.164. */
  phoneNumber: string | null
  /** The number as the platform writes it, digits alone. */
  waId: string | null
  bsuid: string | null
  parentBsuid: string | null
  username: string | null
  name: string | null
}

/** The person in an inbound message. */
export interface Sender extends Profile {
  /** When the message was sent. */
  sentAt: Date
}

/** Somebody whom the platform named beside a message: by number in digits, by user id, or both. */
export const personOf = (names: { wa_id: string | null; bsuid: string | null }, at: Date): Sender => ({
  sentAt: at,
  phoneNumber: names.wa_id && `+${names.wa_id}`,
  waId: names.wa_id,
  bsuid: names.bsuid,
  parentBsuid: null,
  username: null,
  name: null,
})

/** The longest that the public API knows (section 8.2), in characters. */
const maxNameLength = 200
const maxUsernameLength = 100

export function senderOf(body: z.output<(typeof recordInbound)['body']>): Sender {
  const waId = body.wa_id?.replaceAll(/\D/g, '') || null
  return {
    sentAt: new Date(body.sent_at),
    phoneNumber: waId && `+${waId}`,
    waId,
    bsuid: body.bsuid,
    parentBsuid: body.parent_bsuid,
    username: cut(body.username, maxUsernameLength),
    name: nameOf(body.profile_name),
  }
}

export const nameOf = (text: string | null): string | null => cut(text, maxNameLength)

/** At most so many characters, none of them half; null when nothing is left. */
const cut = (text: string | null, length: number) =>
  Array.from(text?.trim() ?? '')
    .slice(0, length)
    .join('')
    .trim() || null

/**
 * What is known after a message. The phone number and the name stay once they are there; the rest follows the newest
 * message, and an older one that comes late only fills what is empty.
 */
export function learn(known: Profile, sender: Sender, lastInboundAt: Date | null): Profile {
  const isNewest = lastInboundAt === null || sender.sentAt >= lastInboundAt
  const latest = (was: string | null, is: string | null) => (was === null || (isNewest && is !== null) ? is : was)
  return {
    phoneNumber: known.phoneNumber ?? sender.phoneNumber,
    waId: latest(known.waId, sender.waId),
    bsuid: latest(known.bsuid, sender.bsuid),
    parentBsuid: latest(known.parentBsuid, sender.parentBsuid),
    username: latest(known.username, sender.username),
    name: known.name ?? sender.name,
  }
}

const fields = ['phoneNumber', 'waId', 'bsuid', 'parentBsuid', 'username', 'name'] as const

/** Only what `learn` looks at. */
export const isSameProfile = (a: Profile, b: Profile): boolean => fields.every((field) => a[field] === b[field])
