import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import type { KeyRing } from '../service/environment.ts'
import { Problem } from '../api/problem.ts'

/**
 * Seals a secret with AES-256-GCM for one row: `keyId.nonce.ciphertext+tag`, base64url. `boundTo` names the row and the
 * column (`account:acc_…`); a ciphertext that was moved to another row does not open.
 */
export function seal(keys: KeyRing, plaintext: string, boundTo: string): string {
  const nonce = randomBytes(12)
  const cipher = createCipheriv('aes-256-gcm', keyOf(keys, keys.current), nonce).setAAD(
    bindingOf(keys.current, boundTo),
  )
  const sealed = Buffer.concat([cipher.update(plaintext, 'utf8'), cipher.final(), cipher.getAuthTag()])
  return `${keys.current}.${nonce.toString('base64url')}.${sealed.toString('base64url')}`
}

/**
 * Opens what `seal` made for the same row, with whichever key it names. Throws when it was changed or moved; without its key
 * `service_unavailable`, for that passes when the operator gives the key back.
 */
export function unseal(keys: KeyRing, sealed: string, boundTo: string): string {
  const [keyId = '', nonce = '', text = ''] = sealed.split('.')
  const bytes = Buffer.from(text, 'base64url')
  const iv = Buffer.from(nonce, 'base64url')
  // Without the length Node takes a shorter tag, too.
  const decipher = createDecipheriv('aes-256-gcm', keyOf(keys, keyId), iv, { authTagLength: tagBytes })
  decipher.setAAD(bindingOf(keyId, boundTo)).setAuthTag(bytes.subarray(-tagBytes))
  return Buffer.concat([decipher.update(bytes.subarray(0, -tagBytes)), decipher.final()]).toString('utf8')
}

/** The same secret under the current key; as it is when that sealed it, or when it does not open. */
export function renewed(keys: KeyRing, sealed: string, boundTo: string): string {
  if (keyIdOf(sealed) === keys.current) return sealed
  try {
    return seal(keys, unseal(keys, sealed, boundTo), boundTo)
  } catch {
    return sealed
  }
}

/** Which key sealed it. */
const keyIdOf = (sealed: string) => sealed.split('.', 1)[0] ?? ''

const tagBytes = 16

const bindingOf = (keyId: string, boundTo: string) => Buffer.from(`${keyId}\n${boundTo}`)

function keyOf(keys: KeyRing, keyId: string) {
  const key = keys.byId.get(keyId)
  if (key) return key
  throw new Problem('service_unavailable', { cause: new Error(`no key ${JSON.stringify(keyId)} in SEAL_KEYS`) })
}
