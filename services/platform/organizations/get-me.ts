import type { Handler } from '@app/shared/api/contract.ts'
import type { getMe as contract } from '@app/shared/contracts/platform.ts'
import { notFound } from '@app/shared/api/problem.ts'
import type { App } from '../app.ts'
import { meColumns, type MeRow, toMe } from './me.ts'

export const getMe: Handler<App, typeof contract> = async ({ sql, rateTiers }, _, { organizationId, keyId }) => {
  const [row] = await sql<MeRow[]>`
    select ${meColumns(sql)} from organizations o join api_keys k on k.organization_id = o.id
    where o.id = ${organizationId} and k.id = ${keyId}
  `
  if (!row) throw notFound()
  return toMe(rateTiers, row)
}
