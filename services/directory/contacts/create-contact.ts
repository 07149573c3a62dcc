import type { Answer, Handler } from '@app/shared/api/contract.ts'
import { createContact as contract } from '@app/shared/contracts/contacts.ts'
import type { TransactionSql } from '@app/shared/database/database.ts'
import { record } from '@app/shared/events/events.ts'
import { once } from '@app/shared/idempotency/idempotency.ts'
import { newId, timeOf } from '@app/shared/values/ids.ts'
import { phoneNumberOf } from '@app/shared/values/phone-number.ts'
import { notFound, Problem } from '@app/shared/api/problem.ts'
import type { z } from 'zod'
import type { App } from '../app.ts'
import { createdEvent } from './contact-events.ts'
import { findContact, toContact } from './contacts.ts'
import { claimNames, type Identity, identitiesMeantBy, mayHaveBeen } from './identities.ts'
import type { Origin } from './identity-updated.ts'
import { mindStop } from './remembered-stops.ts'
import { untilWon } from '../races.ts'

interface NewContact extends Omit<z.output<(typeof contract)['body']>, 'phone_number'> {
  phoneNumber: string | null
}

/** Another call was faster with one of the names. */
class NameTaken extends Error {
  override readonly name = 'NameTaken'
}

export const createContact: Handler<App, typeof contract> = async (app, { params, body }, caller) => {
  const { phone_number: given, ...rest } = body
  const origin: Origin = { ...caller, phoneNumberId: params.phone_number_id }
  let isMade = false
  const effect = async (tx: TransactionSql): Promise<Answer<typeof contract>> => {
    const phoneNumber = given === undefined ? null : phoneNumberOf(given, 'phone_number')
    const contact: NewContact = { ...rest, phoneNumber }
    await requireAccount(tx, origin)
    return untilWon(async () => {
      const knownId = await whoHas(tx, origin, contact)
      const id = knownId ?? (await insert(tx, origin, contact))
      if (id === null) return undefined
      isMade = knownId === null
      const row = await findContact(tx, origin, id)
      return row && toContact(row)
    })
  }
  return once(app, contract, caller, effect, { status: () => (isMade ? 201 : 200) })
}

async function requireAccount(tx: TransactionSql, { organizationId, phoneNumberId }: Origin) {
  const [account] = await tx`
    select account_id from accounts where organization_id = ${organizationId} and phone_number_id = ${phoneNumberId}
  `
  if (!account) throw notFound()
}

/** The contact that has the number or the bsuid; they must not be two. A number as given comes before one as the platform writes it. */
async function whoHas(tx: TransactionSql, origin: Origin, { phoneNumber, bsuid }: NewContact): Promise<string | null> {
  const [byPhone = null] = await ownersOf(tx, origin, phonesOf(phoneNumber))
  const [byBsuid = null] = await ownersOf(tx, origin, bsuidOf(bsuid))
  if (byPhone !== null && byBsuid !== null && byPhone !== byBsuid) throw new Problem('contact_identity_conflict')
  return byPhone ?? byBsuid
}

async function ownersOf(tx: TransactionSql, { organizationId, phoneNumberId }: Origin, identities: Identity[]) {
  const rows = await tx<{ contactId: string }[]>`
    select i.contact_id
    from json_to_recordset(${JSON.stringify(identities)}::text::json) as u(kind text, value text)
    cross join lateral (
      select contact_id, kind from identities
      where organization_id = ${organizationId} and phone_number_id = ${phoneNumberId} and kind = u.kind and value = u.value
      limit 1
    ) i
    order by i.kind
  `
  return rows.map(({ contactId }) => contactId)
}

const bsuidOf = (bsuid: string | undefined): Identity[] =>
  bsuid === undefined ? [] : [{ kind: 'bsuid', value: bsuid }]

const phonesOf = (phoneNumber: string | null): Identity[] =>
  phoneNumber === null ? [] : identitiesMeantBy(phoneNumber)

/** Null when another call took one of the names meanwhile: then nothing is left behind. */
async function insert(tx: TransactionSql, origin: Origin, contact: NewContact): Promise<string | null> {
  const { organizationId, phoneNumberId } = origin
  const { phoneNumber, bsuid = null, username = null, name = null, email = null, metadata = null } = contact
  const id = newId('ctc')
  const createdAt = timeOf(id)
  const names: Identity[] = phoneNumber === null ? [] : [{ kind: 'phone', value: phoneNumber }]
  const identities = [...bsuidOf(contact.bsuid), ...names]
  try {
    await tx.savepoint(async (attempt) => {
      await attempt`
        insert into contacts (organization_id, id, phone_number_id, phone_number, bsuid, username, name, email, metadata,
          created_at, updated_at)
        values (${organizationId}, ${id}, ${phoneNumberId}, ${phoneNumber}, ${bsuid}, ${username}, ${name}, ${email},
          ${metadata && JSON.stringify(metadata)}::text::jsonb, ${createdAt}, ${createdAt})
      `
      const claimed = await claimNames(attempt, origin, id, identities)
      if (claimed.count < identities.length) throw new NameTaken()
      await mindStop(attempt, id, { ...origin, identities: mayHaveBeen({ phoneNumber, waId: null, bsuid }) })
      const facts = { id, phoneNumber, name, email, metadata, phoneNumberId, createdAt, updatedAt: createdAt }
      await record(attempt, [createdEvent(facts, origin)])
    })
    return id
  } catch (err) {
    if (err instanceof NameTaken) return null
    throw err
  }
}
