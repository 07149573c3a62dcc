import type { Handler } from '@app/shared/api/contract.ts'
import type { getSetup as contract } from '@app/shared/contracts/onboarding.ts'
import type { App } from '../app.ts'
import { findConnected } from './connected-number.ts'
import { failureUrlOf, successUrlOf } from './redirects.ts'
import { findSetup, stateOf } from './setups.ts'

export const getSetup: Handler<App, typeof contract> = async ({ sql }, { body }) => {
  const link = await findSetup(sql, body.token)
  const state = stateOf(link)
  const number = await findConnected(sql, link.organizationId, link.accountId)
  return {
    setup_link_id: link.id,
    state,
    organization_name: link.organizationName,
    customer_name: link.customerName,
    expires_at: link.expiresAt.toISOString(),
    success_url: state === 'consumed' ? successUrlOf(link, number?.phone_number_id ?? null) : null,
    cancelled_url: failureUrlOf(link, 'cancelled'),
    failed_url: failureUrlOf(link, 'failed'),
    number,
  }
}
