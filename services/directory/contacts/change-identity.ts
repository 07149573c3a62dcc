import type { Handler } from '@app/shared/api/contract.ts'
import type { changeIdentity as contract } from '@app/shared/contracts/directory-changes.ts'
import type { TransactionSql } from '@app/shared/database/database.ts'
import { record } from '@app/shared/events/events.ts'
import { notFound } from '@app/shared/api/problem.ts'
import type { App } from '../app.ts'
import type { FoundContact } from '../conversations/look-up.ts'
import { touchConversations } from '../conversations/touch-conversations.ts'
import { forgetWordsOf } from './address-book-words.ts'
import { contactParties, nobody } from './contact-parties.ts'
import {
  claimNames,
  freeNumber,
  haveNames,
  type Identity,
  identitiesOf,
  isSameIdentity,
  mayHaveBeen,
} from './identities.ts'
import { type Change, findDone, followed, left, leftSince, noteDone } from './identity-changes.ts'
import { identityUpdated, isIdentityUpdate, type Origin } from './identity-updated.ts'
import { mergeWithin } from './merge-contacts.ts'
import { carryStop, mindStop } from './remembered-stops.ts'
import { rename } from './rename.ts'
import { personOf, type Profile, type Sender } from './sender.ts'
import { Overtaken, untilWon } from '../races.ts'

type Apply = Handler<App, typeof contract>

export const changeIdentity: Apply = (app, input, caller) => app.peopleInTurn(caller, () => change(app, input, caller))

const change: Apply = async (app, { params, body }, caller) => {
  const { organizationId, traceparent } = caller
  const origin = { organizationId, traceparent, phoneNumberId: params.phone_number_id }
  const sentAt = new Date(body.at)
  return untilWon(async () => {
    const done = await findDone(app.sql, origin, body)
    if (done !== null) return contactParties(app.sql, origin, done)
    const latest = await followed(app.sql, origin, body)
    const before = identitiesOf(personOf(latest.previous, sentAt))
    const sender: Sender = { ...personOf(latest.current, sentAt), parentBsuid: latest.current.parent_bsuid }
    // Late messages may still come under a user id that was replaced since.
    const names = [
      ...identitiesOf(sender),
      ...identitiesOf({ phoneNumber: null, waId: null, bsuid: body.current.bsuid }),
    ]
    const identities = [...before, ...names]
    const { account, contacts } = await app.lookUp({ ...origin, identities })
    if (!account) throw notFound()
    // Who has one of the names from before is the person; who has only the new ones was taken for somebody else.
    const isBefore = (contact: FoundContact) =>
      contact.identities.some((name) => before.some((other) => isSameIdentity(name, other)))
    const [contact, ...others] = contacts.toSorted((a, b) => Number(isBefore(b)) - Number(isBefore(a)))
    if (!contact) {
      const known = { ...origin, identities: mayHaveBeen(personOf(latest.previous, sentAt)) }
      await carryStop(app.sql, known, identitiesOf(sender), sentAt)
      // Who was made meanwhile was not found to have stopped.
      const { contacts: made } = await app.lookUp({ ...origin, identities })
      return made.length === 0 ? nobody : undefined
    }
    const isWritten = await write(app, [contact, ...others], { told: body, latest, sender, names }, origin)
    return isWritten ? contactParties(app.sql, origin, contact.id) : undefined
  })
}

interface Told {
  told: Change
  /** The change as it is to be made by now, and who its person is then. */
  latest: Change
  sender: Sender
  names: Identity[]
}

type People = [FoundContact, ...FoundContact[]]

async function write({ sql, relay, tellChanged }: App, people: People, told: Told, origin: Origin) {
  const writing = sql.begin((tx) => writeWithin(tx, people, told, origin))
  const isWritten = await writing.finally(() => tellChanged(people.map(({ id }) => id)))
  relay.wake()
  return isWritten
}

/**
 * Renames the contact; of several the first, into which the others are merged. It is noted in the same transaction: a number that is free
 * and has no note would be taken by a late message from before the change. False when the contacts have changed since they were found:
 * look again.
 */
async function writeWithin(
  tx: TransactionSql,
  [contact, ...others]: People,
  { told, latest, sender, names }: Told,
  origin: Origin,
) {
  const after = rename(contact, latest)
  const leftNumber = left('wa_id', latest)
  const given = contact.phoneNumber === after.phoneNumber ? null : contact.phoneNumber
  const givenUp = [leftNumber, given && given.slice(1)].filter((waId) => waId !== null)
  await forgetWordsOf(tx, origin, contact.id, givenUp)
  const isRenamed =
    others.length > 0
      ? await mergeWithin(tx, sender, [contact, ...others], origin, (known) => rename(known, latest))
      : await renameOne(tx, contact, after, latest, origin)
  if (!isRenamed) return false
  // By another change of the contact, which was waited for.
  if (await leftSince(tx, origin, latest)) throw new Overtaken()
  await freeNumber(tx, origin, contact.id, leftNumber && `+${leftNumber}`)
  // As it was given, which the platform may write in another way.
  await freeNumber(tx, origin, contact.id, given)
  await takeNames(tx, origin, contact.id, names)
  // Under a name that is new to the contact somebody may have stopped, and under one from before it may have done so itself.
  const known = [...mayHaveBeen(personOf(latest.previous, new Date(told.at))), ...mayHaveBeen(after), ...names]
  await mindStop(tx, contact.id, { ...origin, identities: known })
  await noteDone(tx, origin, contact.id, told)
  return true
}

async function renameOne(tx: TransactionSql, contact: FoundContact, after: Profile, latest: Change, origin: Origin) {
  const { organizationId } = origin
  const written = await tx`
    update contacts set phone_number = ${after.phoneNumber}, wa_id = ${after.waId}, bsuid = ${after.bsuid},
      parent_bsuid = ${after.parentBsuid}, updated_at = greatest(updated_at, clock_timestamp())
    where organization_id = ${organizationId} and id = ${contact.id} and deleted_at is null
      and (phone_number, wa_id, bsuid, parent_bsuid) is not distinct from
        (${contact.phoneNumber}, ${contact.waId}, ${contact.bsuid}, ${contact.parentBsuid})
  `
  if (written.count === 0) return false
  if (contact.phoneNumber !== after.phoneNumber) await touchConversations(tx, organizationId, [contact.id])
  const before = knownBefore(contact, after, latest)
  if (isIdentityUpdate(before, after)) await record(tx, [identityUpdated(contact.id, before, after, origin)])
  return true
}

/**
 * Whoever took one of the names meanwhile is the same person, and is to be merged: else the contact, which gives up its old names, would
 * have none. Who took it may be gone again by now, and then it is nobody's.
 */
async function takeNames(tx: TransactionSql, origin: Origin, contactId: string, names: Identity[]) {
  await claimNames(tx, origin, contactId, names)
  if (!(await haveNames(tx, origin, [{ id: contactId, identities: names }]))) throw new Overtaken()
}

/** What subscribers are told of before: the replaced user id is the platform's word where no message brought it. */
const knownBefore = (contact: FoundContact, after: Profile, { previous }: Change): Profile => ({
  ...contact,
  bsuid: contact.bsuid ?? (after.bsuid && previous.bsuid),
})
