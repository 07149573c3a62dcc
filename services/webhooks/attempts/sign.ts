import { createHmac, createSecretKey, type KeyObject } from 'node:crypto'
import type { Fragment, Sql, TransactionSql } from '@app/shared/database/database.ts'
import type { KeyRing } from '@app/shared/service/environment.ts'
import { mostRecent } from '@app/shared/work/most-recent.ts'
import { openSecret } from '../subscriptions/secrets.ts'

/** Secrets as they stand in their rows: `id sealed,id sealed`. */
export type SealedSecrets = string

/** Those of a subscription that sign now, newest first, as a column of a statement. */
export const signing = (sql: Sql | TransactionSql, subscriptionId: Fragment): Fragment => sql`
  coalesce((
    select string_agg(k.id || ' ' || k.sealed, ',' order by k.id desc)
    from secrets k where k.subscription_id = ${subscriptionId} and (k.expires_at is null or k.expires_at > now())
  ), '')
`

export type KeysOf = (secrets: SealedSecrets) => KeyObject[]

/** Opens secrets. Which ones sign is read with every claim; opened ones are kept, by the text that was read. */
export function createKeysOf(sealKeys: KeyRing): KeysOf {
  const opened = mostRecent<SealedSecrets, KeyObject[]>(20_000)
  return (secrets) => {
    const known = opened.get(secrets)
    if (known) return known
    const rows = secrets === '' ? [] : secrets.split(',')
    const keys = rows.map((row) => {
      const [id = '', sealed = ''] = row.split(' ')
      return createSecretKey(openSecret(sealKeys, id, sealed), 'utf8')
    })
    opened.set(secrets, keys)
    return keys
  }
}

/** The value of `X-Svc-Signature`: `t=<seconds>,v1=<hex>`, one `v1` a key, in their order. */
export function signatureOf(keys: KeyObject[], body: Uint8Array, atMs: number): string {
  const t = Math.floor(atMs / 1_000)
  const signed = keys.map((key) => `,v1=${createHmac('sha256', key).update(`${t}.`).update(body).digest('hex')}`)
  return `t=${t}${signed.join('')}`
}
