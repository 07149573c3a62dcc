import type { Caller } from '@app/shared/api/contract.ts'
import { momentOf } from '@app/shared/database/moment-of.ts'
import type { App } from '../app.ts'
import { tellStates } from '../accounts/tell-states.ts'
import { upstreamErrorOf } from '../upstream/refusals.ts'
import { settleReport } from './account-reports.ts'
import { effectOf } from './effect-of.ts'

interface Account {
  phoneNumberId: string
  businessAccountId: string
}

/** Asks the platform with an account's token; a refusal that bears on the account is settled as one that messaging hears. */
export async function askAs<T>(app: App, account: Account, caller: Caller, ask: () => Promise<T>): Promise<T> {
  // An answer is about the token of the question. By the time it comes the number may have another one.
  const askedAt = performance.now()
  try {
    return await ask()
  } catch (err) {
    const code = upstreamErrorOf(err)?.code
    if (code !== undefined) await settle(app, account, caller, { code, askedAt })
    throw err
  }
}

async function settle(
  app: App,
  { phoneNumberId, businessAccountId }: Account,
  caller: Caller,
  { code, askedAt }: { code: number; askedAt: number },
) {
  const { appId } = app.upstream
  if (effectOf({ code, change: null }, appId).kind === 'poll') return
  const place = { phone_number_id: phoneNumberId, business_account_id: businessAccountId }
  await app.sql
    .begin(async (tx) => {
      const at = await momentOf(tx, askedAt)
      const report = { ...place, code, change: null, at: at.toISOString() }
      return settleReport(tx, caller.organizationId, report, appId)
    })
    .then((states) => {
      app.relay.wake()
      return tellStates(app, states, caller)
    })
    // The refusal is told all the same, and the next one settles it.
    .catch((err: unknown) => app.log.warn({ err, code }, 'a refusal of an account cannot be settled'))
}
