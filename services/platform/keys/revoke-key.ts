import { setTimeout as sleep } from 'node:timers/promises'
import type { Handler } from '@app/shared/api/contract.ts'
import type { revokeKey as contract } from '@app/shared/contracts/platform.ts'
import { Problem } from '@app/shared/api/problem.ts'
import type { App } from '../app.ts'
import { keyColumns, type KeyRow, toApiKey } from './keys.ts'

/**
 * Gateways keep what `authenticateKey` answered for 2 s, counted from when they asked; who asked before the commit has
 * forgotten it by now. The rest is for timers, which may be some ms early.
 */
const forgottenMs = 2_050

/** Revoking again changes nothing, and waits again: the first answer may have been lost on its way. */
export const revokeKey: Handler<App, typeof contract> = async ({ sql }, { body }) => {
  const [row] = await sql<KeyRow[]>`
    update api_keys set revoked_at = coalesce(revoked_at, now()) where id = ${body.key_id} returning ${sql(keyColumns)}
  `
  if (!row) throw new Problem('resource_not_found', { param: 'key_id' })
  await sleep(forgottenMs)
  return toApiKey(row)
}
