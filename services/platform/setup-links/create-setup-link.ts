import { randomBytes } from 'node:crypto'
import type { Caller, Handler, Input } from '@app/shared/api/contract.ts'
import { createSetupLink as contract, customerSetupLinkCreated } from '@app/shared/contracts/customers.ts'
import type { TransactionSql } from '@app/shared/database/database.ts'
import { emit } from '@app/shared/events/events.ts'
import { once } from '@app/shared/idempotency/idempotency.ts'
import { newId, timeOf } from '@app/shared/values/ids.ts'
import { notFound, Problem } from '@app/shared/api/problem.ts'
import type { App } from '../app.ts'
import { type CustomerRow, lockCustomer } from '../customers/customers.ts'
import { hashOf } from '../keys/keys.ts'
import { refuseBarred } from '../organizations/bar.ts'
import { linkColumns, type LinkRow, redirectOf, toSetupLink } from './setup-links.ts'

type Wanted = Input<typeof contract>['body']

const weekHours = 168
const hourMs = 60 * 60 * 1000

export const createSetupLink: Handler<App, typeof contract> = (app, { params, body }, caller) =>
  app.inTurn(caller, () =>
    once(
      app,
      contract,
      caller,
      async (tx) => {
        await refuseBarred(tx, caller.organizationId)
        const customer = await lockCustomer(tx, caller.organizationId, params.id)
        if (!customer) throw notFound()
        if (customer.status === 'suspended' || customer.status === 'archived') throw new Problem('customer_suspended')
        const token = randomBytes(32).toString('base64url')
        const link = toSetupLink(await insertLink(tx, customer, token, body))
        await emit(
          tx,
          customerSetupLinkCreated,
          { customer_id: customer.id, setup_link: link },
          originOf(customer, caller),
        )
        return { ...link, setup_url: `${app.publicUrl}/setup/${token}` }
      },
      { secret: true },
    ),
  )

const originOf = ({ organizationId, id }: CustomerRow, { traceparent }: Caller) => ({
  organizationId,
  line: id,
  traceparent,
})

async function insertLink(tx: TransactionSql, customer: CustomerRow, token: string, wanted: Wanted) {
  const id = newId('csl')
  const createdAt = timeOf(id)
  const expiresAt = new Date(createdAt.getTime() + (wanted.expires_in_hours ?? weekHours) * hourMs)
  const [row] = await tx<[LinkRow]>`
    insert into setup_links as l (organization_id, id, customer_id, token_hash, token_last4, status,
      success_redirect_url, failure_redirect_url, expires_at, created_at)
    values (${customer.organizationId}, ${id}, ${customer.id}, ${hashOf(token)}, ${token.slice(-4)}, 'active',
      ${redirectOf(wanted.success_redirect_url)}, ${redirectOf(wanted.failure_redirect_url)}, ${expiresAt},
      ${createdAt})
    returning ${linkColumns(tx)}
  `
  return row
}
