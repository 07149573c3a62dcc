import { createHmac } from 'node:crypto'
import type { Caller } from '@app/shared/api/contract.ts'
import type { App } from '../app.ts'

/**
 * A plain hash of a request tells a PIN of six digits, of which there are a million, to whoever reads the table of keys. So what is
 * kept of it is made with a key of `SEAL_KEYS`: for a request that is known with the one that was used then, also after a rotation.
 */
export async function hideFingerprint(
  { sql, sealKeys }: Pick<App, 'sql' | 'sealKeys'>,
  caller: Caller,
): Promise<Caller> {
  const { organizationId, idempotency } = caller
  if (!idempotency) return caller
  const { key, fingerprint } = idempotency
  const [known] = await sql<{ keyId: string }[]>`
    select split_part(fingerprint, '.', 1) as key_id from idempotency.keys
    where organization_id = ${organizationId} and key = ${key}
  `
  const keyId = known && sealKeys.byId.has(known.keyId) ? known.keyId : sealKeys.current
  const mac = createHmac('sha256', sealKeys.byId.get(keyId) ?? '').update(
    `fingerprint\n${organizationId}\n${key}\n${fingerprint}`,
  )
  return { ...caller, idempotency: { key, fingerprint: `${keyId}.${mac.digest('base64url')}` } }
}
