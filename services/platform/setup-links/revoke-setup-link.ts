import type { Handler } from '@app/shared/api/contract.ts'
import type { revokeSetupLink as contract } from '@app/shared/contracts/customers.ts'
import type { App } from '../app.ts'
import { changeLink } from './change-link.ts'
import { linkColumns, type LinkRow, toSetupLink } from './setup-links.ts'

export const revokeSetupLink: Handler<App, typeof contract> = async (app, { params }, caller) => {
  const link = await changeLink(app, params, caller, async (tx, { id }) => {
    const [row] = await tx<[LinkRow]>`
      update setup_links l set status = 'revoked' where l.organization_id = ${caller.organizationId} and l.id = ${id}
      returning ${linkColumns(tx)}
    `
    return row
  })
  return toSetupLink(link)
}
