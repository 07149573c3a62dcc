import { accountReported } from '@app/shared/contracts/messaging.ts'
import { emit } from '@app/shared/events.ts'
import type { Core } from '../app.ts'
import { UpstreamRefusal } from '../upstream/ask-upstream.ts'
import type { Component } from './check-components.ts'
import { refusalOf } from './refusals.ts'
import type { TemplateAccount } from './templates.ts'

/** Codes that bear on the account: its token, its number, or its standing with the platform. */
const aboutAccount = new Set([0, 33, 190, 368, 131031, 131042])

/** Asks the platform about an account's templates: what it refuses becomes our failure, and platform hears of what bears on the account. */
export async function askAbout<T>(
  core: Core,
  account: TemplateAccount,
  ask: () => Promise<T>,
  components?: readonly Component[],
): Promise<T> {
  try {
    return await ask()
  } catch (err) {
    if (err instanceof UpstreamRefusal && aboutAccount.has(err.code)) await report(core, account, err.code)
    throw refusalOf(err, components)
  }
}

async function report({ sql, relay, log }: Core, account: TemplateAccount, code: number) {
  const { organizationId, phoneNumberId, businessAccountId } = account
  const data = { phone_number_id: phoneNumberId, business_account_id: businessAccountId, code, change: null }
  await sql
    .begin((tx) => emit(tx, accountReported, data, { organizationId, phoneNumberId }))
    .then(relay.wake)
    // The refusal is told all the same, and the next one reports again.
    .catch((err: unknown) => log.warn({ err, code }, 'account report'))
}
