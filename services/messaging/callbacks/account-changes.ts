import { accountReported } from '@app/shared/contracts/messaging.ts'
import { record, type Recorded, recorded } from '@app/shared/events/events.ts'
import { otherWritingOf } from '@app/shared/values/phone-number.ts'
import { z } from 'zod'
import type { Core } from '../app.ts'
import type { Change } from './changes.ts'
import { errorCode } from './error-code.ts'
import { logChange } from './note-change.ts'

const shownNumber = z
  .union([z.string(), z.int().transform(String)])
  .optional()
  .catch(undefined)

const AccountValue = z.looseObject({ phone_number: shownNumber, display_phone_number: shownNumber })

/** One without a code tells nothing, and holds up none beside it. */
const Errors = z.object({
  errors: z.array(
    z
      .looseObject({ code: errorCode.pipe(z.int()) })
      .nullable()
      .catch(null),
  ),
})

/** What bears on the state of an account goes to platform, which owns accounts and asks the upstream how it is now. */
export async function reportAccount(core: Core, change: Change): Promise<boolean> {
  const { field, value } = change
  const shown = shownDigits(value)
  const phoneNumberId = change.phoneNumberId ?? (shown === '' ? null : await numberOf(core, change, shown))
  logChange(core, change)
  // What befell a number that the organization does not have befell none of its own: they are asked for, and that is all.
  const isForeign = shown !== '' && phoneNumberId === null
  await tell(core, [
    reported(change, phoneNumberId, { code: null, change: { field, value: isForeign ? null : value } }),
  ])
  return true
}

/** Errors of a number that belong to no message, such as a token that is no longer taken. */
export async function reportErrors(core: Core, change: Change): Promise<boolean> {
  const codes = new Set(Errors.parse(change.value).errors.flatMap((error) => error?.code ?? []))
  logChange(core, change)
  await tell(
    core,
    [...codes].map((code) => reported(change, change.phoneNumberId, { code, change: null })),
  )
  return true
}

/** The digits of the number that an account's change shows; empty when it shows none. */
function shownDigits(value: Change['value']) {
  const { phone_number: phone, display_phone_number: display } = AccountValue.parse(value)
  return (phone ?? display ?? '').replaceAll(/\D/g, '')
}

/** The number with these digits; null when it is not the organization's. */
async function numberOf({ sql }: Core, { organizationId, businessAccountId }: Change, digits: string) {
  const writings = [`+${digits}`, otherWritingOf(`+${digits}`) ?? `+${digits}`]
  const [row] = await sql<{ phoneNumberId: string }[]>`
    select phone_number_id from senders
    where organization_id = ${organizationId} and business_account_id = ${businessAccountId}
      and phone_number = any(${writings}::text[]) and attached
    limit 1
  `
  return row?.phoneNumberId ?? null
}

const reported = (
  { organizationId, businessAccountId, at }: Change,
  phoneNumberId: string | null,
  what: { code: number | null; change: { field: string; value: unknown } | null },
): Recorded =>
  recorded(
    accountReported,
    { phone_number_id: phoneNumberId, business_account_id: businessAccountId, ...what, at: at.toISOString() },
    { organizationId, phoneNumberId: phoneNumberId ?? undefined },
  )

async function tell({ sql, relay }: Core, events: Recorded[]) {
  await sql.begin((tx) => record(tx, events))
  relay.wake()
}
