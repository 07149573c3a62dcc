import { randomBytes } from 'node:crypto'
import type { Handler } from '@app/shared/api/contract.ts'
import type { createKey as contract } from '@app/shared/contracts/platform.ts'
import { newId } from '@app/shared/values/ids.ts'
import { invalidField } from '@app/shared/api/problem.ts'
import type { App } from '../app.ts'
import { violates } from '../constraints.ts'
import { unknownOrganization } from '../organizations/organizations.ts'
import { hashOf, keyColumns, type KeyRow, toApiKey } from './keys.ts'

export const createKey: Handler<App, typeof contract> = async ({ sql }, { body }) => {
  const { organization_id: organizationId, label, expires_at: expiresAt } = body
  if (expiresAt !== undefined && Date.parse(expiresAt) <= Date.now()) {
    throw invalidField('expires_at', 'expires_at must be in the future.')
  }
  // 18 bytes are 24 characters.
  const key = `svc_live_${randomBytes(18).toString('base64url')}`
  const [row] = await sql<[KeyRow]>`
    insert into api_keys (organization_id, id, hash, label, last4, expires_at)
    values (${organizationId}, ${newId('key')}, ${hashOf(key)}, ${label}, ${key.slice(-4)}, ${expiresAt ?? null})
    returning ${sql(keyColumns)}
  `.catch((err: unknown) => {
    throw violates(err, 'api_keys_organization_id_fkey') ? unknownOrganization() : err
  })
  return { ...toApiKey(row), key }
}
