import { isDeepStrictEqual } from 'node:util'
import type { Handler } from '@app/shared/api/contract.ts'
import type { updateContact as contract } from '@app/shared/contracts/contacts.ts'
import type { TransactionSql } from '@app/shared/database/database.ts'
import { notFound } from '@app/shared/api/problem.ts'
import type { z } from 'zod'
import type { App } from '../app.ts'
import { touchConversations } from '../conversations/touch-conversations.ts'
import { factColumns, type Facts, recordUpdated } from './contact-events.ts'
import { findContact, toContact } from './contacts.ts'
import type { Origin } from './identity-updated.ts'

type Body = z.output<(typeof contract)['body']>

const fields = ['name', 'email', 'metadata'] as const

export const updateContact: Handler<App, typeof contract> = async (app, { params, body }, caller) => {
  const origin = { ...caller, phoneNumberId: params.phone_number_id }
  const changing = app.sql.begin(async (tx) => {
    await change(tx, origin, params.id, body)
    return findContact(tx, origin, params.id)
  })
  const row = await changing.finally(() => body.name !== undefined && app.tellChanged([params.id]))
  if (!row) throw notFound()
  app.relay.wake()
  return toContact(row)
}

async function change(tx: TransactionSql, origin: Origin, id: string, body: Body): Promise<void> {
  const { organizationId, phoneNumberId } = origin
  const [before] = await tx<Facts[]>`
    select ${factColumns(tx)} from contacts
    where organization_id = ${organizationId} and phone_number_id = ${phoneNumberId} and id = ${id} and deleted_at is null
    for no key update
  `
  if (!before) throw notFound()
  const changed = fields.filter((field) => body[field] !== undefined && !isDeepStrictEqual(body[field], before[field]))
  if (changed.length === 0) return
  const { name = before.name, email = before.email, metadata = before.metadata } = body
  const contacts = await tx<Facts[]>`
    update contacts set name = ${name}, email = ${email},
      metadata = ${metadata && JSON.stringify(metadata)}::text::jsonb, updated_at = greatest(updated_at, clock_timestamp())
    where organization_id = ${organizationId} and id = ${id}
    returning ${factColumns(tx)}
  `
  await recordUpdated(tx, contacts, changed, origin)
  if (changed.includes('name')) await touchConversations(tx, organizationId, [id])
}
