import { customerOnboarded, customerSetupLinkConsumed } from '@app/shared/contracts/customers.ts'
import type { TransactionSql } from '@app/shared/database/database.ts'
import { emit } from '@app/shared/events/events.ts'
import { displayPhoneNumber } from '@app/shared/values/phone-number.ts'
import { notFound, Problem } from '@app/shared/api/problem.ts'
import { lockCustomer } from '../customers/customers.ts'
import { noteNumber } from '../customers/note-number.ts'
import { type Link, readLink } from './find-link.ts'
import { linkColumns, type LinkRow, toSetupLink } from './setup-links.ts'

/** The number that was connected through the link. Its account is already there, in this transaction. */
export interface ConnectedNumber {
  accountId: string
  phoneNumberId: string
  /** E.164. */
  phoneNumber: string | null
  traceparent?: string | undefined
}

/**
 * Marks the link consumed by the number, makes a pending customer active, and emits what tells it. Of several at once one
 * consumes; of the others the link's refusal is thrown, so that nothing of their transactions stays. Lock the organization
 * before, as for any change of an account.
 */
export async function consumeLink(tx: TransactionSql, link: Link, number: ConnectedNumber): Promise<void> {
  const { organizationId, customerId, id } = link
  const { accountId, phoneNumberId, traceparent } = number
  const customer = await lockCustomer(tx, organizationId, customerId)
  if (!customer) throw notFound()
  await tx`select id from setup_links where organization_id = ${organizationId} and id = ${id} for no key update`
  const { refusal } = await readLink(tx, link)
  if (refusal !== null) throw new Problem(refusal)
  const [consumed] = await tx<[LinkRow]>`
    update setup_links l set status = 'consumed', consumed_at = now(), account_id = ${accountId}
    where l.organization_id = ${organizationId} and l.id = ${id}
    returning ${linkColumns(tx)}
  `
  const origin = { organizationId, line: customerId, phoneNumberId, traceparent: traceparent ?? '' }
  const ids = { customer_id: customerId, account_id: accountId, phone_number_id: phoneNumberId }
  if (await noteNumber(tx, customer)) {
    const phoneNumber = number.phoneNumber === null ? null : displayPhoneNumber(number.phoneNumber)
    await emit(tx, customerOnboarded, { ...ids, phone_number: phoneNumber }, origin)
  }
  await emit(tx, customerSetupLinkConsumed, { ...ids, setup_link: toSetupLink(consumed) }, origin)
}
