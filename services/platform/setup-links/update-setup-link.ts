import type { Handler } from '@app/shared/api/contract.ts'
import type { updateSetupLink as contract } from '@app/shared/contracts/customers.ts'
import type { App } from '../app.ts'
import { changeLink } from './change-link.ts'
import { linkColumns, type LinkRow, redirectOf, toSetupLink } from './setup-links.ts'

export const updateSetupLink: Handler<App, typeof contract> = async (app, { params, body }, caller) => {
  const { success_redirect_url: success, failure_redirect_url: failure } = body
  const link = await changeLink(app, params, caller, async (tx, before) => {
    const [row] = await tx<[LinkRow]>`
      update setup_links l set
        success_redirect_url = ${success === undefined ? before.successRedirectUrl : redirectOf(success)},
        failure_redirect_url = ${failure === undefined ? before.failureRedirectUrl : redirectOf(failure)}
      where l.organization_id = ${caller.organizationId} and l.id = ${before.id}
      returning ${linkColumns(tx)}
    `
    return row
  })
  return toSetupLink(link)
}
