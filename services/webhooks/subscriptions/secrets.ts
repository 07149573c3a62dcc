import { randomBytes } from 'node:crypto'
import type { Sql, TransactionSql } from '@app/shared/database/database.ts'
import type { KeyRing } from '@app/shared/service/environment.ts'
import { newId, timeOf } from '@app/shared/values/ids.ts'
import { seal, unseal } from '@app/shared/secrets/seal.ts'
import { sealedColumn } from '@app/shared/secrets/sealed-columns.ts'

/** A secret as its owner sees it once. */
export interface NewSecret {
  id: string
  /** The whole of it, as UTF-8, is the HMAC key. */
  text: string
  createdAt: Date
}

export async function createSecret(
  tx: TransactionSql,
  sealKeys: KeyRing,
  subscriptionId: string,
  expiresAt: Date | null = null,
): Promise<NewSecret> {
  const id = newId('sec')
  const text = `whsec_${randomBytes(32).toString('base64url')}`
  const createdAt = timeOf(id)
  await tx`
    insert into secrets (id, subscription_id, sealed, created_at, expires_at)
    values (${id}, ${subscriptionId}, ${seal(sealKeys, text, bindingOf(id))}, ${createdAt}, ${expiresAt})
  `
  return { id, text, createdAt }
}

export const openSecret = (sealKeys: KeyRing, id: string, sealed: string): string =>
  unseal(sealKeys, sealed, bindingOf(id))

const bindingOf = (id: string) => `webhook_secret:${id}`

export const sealedSecrets = sealedColumn('sealed', {
  table: 'secrets',
  rowKey: ['id'],
  boundBy: 'id',
  boundTo: ([id = '']) => bindingOf(id),
})

/** A sweep: secrets that expired a month ago. */
export async function sweepSecrets(sql: Sql): Promise<number> {
  const { count } = await sql`
    delete from secrets where id in (select id from secrets where expires_at < now() - interval '30 days' limit 1000)
  `
  return count
}
