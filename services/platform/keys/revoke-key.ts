import type { Handler } from '@app/shared/api/contract.ts'
import type { revokeKey as contract } from '@app/shared/contracts/platform.ts'
import { Problem } from '@app/shared/api/problem.ts'
import type { App } from '../app.ts'
import { keyColumns, type KeyRow, toApiKey } from './keys.ts'
import { untilForgotten } from './until-forgotten.ts'

/** Revoking again changes nothing, and waits again: the first answer may have been lost on its way. */
export const revokeKey: Handler<App, typeof contract> = async ({ sql }, { body }) => {
  const [row] = await sql<KeyRow[]>`
    update api_keys set revoked_at = coalesce(revoked_at, now()) where id = ${body.key_id} returning ${sql(keyColumns)}
  `
  if (!row) throw new Problem('resource_not_found', { param: 'key_id' })
  await untilForgotten()
  return toApiKey(row)
}
