import { systemCaller } from '@app/shared/ask.ts'
import { tellStates } from '../accounts/tell-states.ts'
import type { App } from '../app.ts'
import { attachAccount } from './attach-account.ts'
import { chooseNumber } from './choose-number.ts'
import { onboardingColumns, type OnboardingRow } from './onboardings.ts'

interface Waiting {
  organizationId: string
  id: string
  businessAccountId: string
  token: string
}

/** Looks whether the business account of an account that waits for its number has one now: then it is onboarded. */
export async function adoptNumber(app: App, account: Waiting, deadline: number): Promise<void> {
  const { organizationId, id, businessAccountId, token } = account
  const [row] = await app.sql<OnboardingRow[]>`
    select ${app.sql(onboardingColumns)} from onboardings
    where organization_id = ${organizationId} and account_id = ${id} order by created_at desc limit 1
  `
  if (!row) return
  const wanted = { event: row.event, phoneNumberId: null, businessAccountId }
  const number = await chooseNumber(app.upstream, wanted, token, deadline)
  if (number === null) return
  const caller = systemCaller(organizationId)
  const { states } = await attachAccount(app, row, { number, token }, caller)
  await tellStates(app, states, caller)
}
