import { createHmac, createSecretKey, type KeyObject } from 'node:crypto'
import type { KeyRing } from '@app/shared/environment.ts'
import { LRUCache } from 'lru-cache'
import { openSecret } from '../subscriptions/secrets.ts'

/** A secret as it stands in its row. */
export interface SealedSecret {
  id: string
  sealed: string
}

export type KeysOf = (secrets: SealedSecret[]) => KeyObject[]

/** Opens secrets. The opened text is kept by the secret's id; which ones sign is read with every claim. */
export function createKeysOf(sealKeys: KeyRing): KeysOf {
  const opened = new LRUCache<string, KeyObject>({ max: 20_000 })
  return (secrets) =>
    secrets.map(({ id, sealed }) => {
      const known = opened.get(id)
      if (known) return known
      const key = createSecretKey(openSecret(sealKeys, id, sealed), 'utf8')
      opened.set(id, key)
      return key
    })
}

/** The value of `X-Svc-Signature`: `t=<seconds>,v1=<hex>`, one `v1` a key, in their order. */
export function signatureOf(keys: KeyObject[], body: Uint8Array, atMs: number): string {
  const t = Math.floor(atMs / 1_000)
  const signed = keys.map((key) => `,v1=${createHmac('sha256', key).update(`${t}.`).update(body).digest('hex')}`)
  return `t=${t}${signed.join('')}`
}
