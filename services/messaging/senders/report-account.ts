import { createInTurn, type InTurn } from '@app/shared/bus/in-turn.ts'
import { accountReported } from '@app/shared/contracts/messaging.ts'
import { momentOf } from '@app/shared/database/moment-of.ts'
import { emit } from '@app/shared/events/events.ts'
import { isUnknownObject } from '@app/shared/outside/upstream-exchange.ts'
import { otherConnections } from '@app/shared/outside/upstream.ts'
import type { Core } from '../app.ts'
import { UpstreamRefusal } from '../upstream/ask-upstream.ts'

interface Account {
  organizationId: string
  phoneNumberId: string
  businessAccountId: string
  /** Until when it is worth asking (performance.now). */
  deadline: number
}

/** Questions at a time of one organization. */
const asksOfOne = 64

/** Half of the connections; the other half is for the first ones of more organizations, and to find files to copy. */
export const createAskInTurn = (): InTurn => createInTurn('questions to the platform', asksOfOne, otherConnections / 2)

/** Codes that bear on the account: its token, its number, or its standing with the platform. */
const aboutAccount = new Set([0, 33, 190, 368, 131031, 131042])

/** Also "unknown object": the platform does not have what was asked about, or hides it from this token. The number may be gone. */
const isAboutAccount = (refusal: UpstreamRefusal) => aboutAccount.has(refusal.code) || isUnknownObject(refusal)

/** Asks the platform with an account's token, in the organization's turn; our platform service hears of a refusal that bears on the account. */
export async function askAs<T>(core: Core, account: Account, ask: () => Promise<T>): Promise<T> {
  // An answer is about the token of the question. By the time it comes the number may have another one.
  const askedAt = performance.now()
  try {
    return await core.askInTurn(account, ask)
  } catch (err) {
    if (err instanceof UpstreamRefusal && isAboutAccount(err)) await report(core, account, err.code, askedAt)
    throw err
  }
}

async function report({ sql, relay, log }: Core, account: Account, code: number, askedAt: number) {
  const { organizationId, phoneNumberId, businessAccountId } = account
  const place = { phone_number_id: phoneNumberId, business_account_id: businessAccountId }
  await sql
    .begin(async (tx) => {
      const at = await momentOf(tx, askedAt)
      const data = { ...place, code, change: null, at: at.toISOString() }
      await emit(tx, accountReported, data, { organizationId, phoneNumberId })
    })
    .then(relay.wake)
    // The refusal is told all the same, and the next one reports again.
    .catch((err: unknown) => log.warn({ err, code }, 'a refusal of an account cannot be reported'))
}
