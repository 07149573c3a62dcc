import type { Handler } from '@app/shared/api/contract.ts'
import type { listKeys as contract } from '@app/shared/contracts/platform.ts'
import type { App } from '../app.ts'
import { unknownOrganization } from '../organizations/organizations.ts'
import { keyColumns, type KeyRow, toApiKey } from './keys.ts'

/** Newest first. */
export const listKeys: Handler<App, typeof contract> = async ({ sql }, { body }) => {
  const [organization] = await sql`select id from organizations where id = ${body.organization_id}`
  if (!organization) throw unknownOrganization()
  const rows = await sql<KeyRow[]>`
    select ${sql(keyColumns)} from api_keys where organization_id = ${body.organization_id} order by id desc
  `
  return { keys: rows.map(toApiKey) }
}
