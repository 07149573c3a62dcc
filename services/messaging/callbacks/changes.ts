import { z } from 'zod'
import type { Core } from '../app.ts'
import { reportAccount, reportErrors } from './account-changes.ts'
import { changeTemplate } from './change-template.ts'
import { importHistory } from './import-history.ts'
import { noteChange } from './note-change.ts'
import { recordEchoes } from './record-echoes.ts'
import { syncContacts } from './sync-contacts.ts'
import { tellPreferences } from './tell-preferences.ts'
import { updateUserIds } from './update-user-ids.ts'
import type { WaitingItem } from './waiting-items.ts'

/** A change that the platform tells of beside messages and statuses (`field` and `value` of its callback). */
export interface Change {
  organizationId: string
  businessAccountId: string
  /** The number that it names (`value.metadata`); null: it is the whole business account's. */
  phoneNumberId: string | null
  /** E.164 of that number. */
  senderPhone: string | null
  field: string
  value: Record<string, unknown>
  /** The `entry[].id` of the callback. */
  entryId: string
  receivedAt: Date
  /** When the platform told it, to the second where it says so, in the order in which it came within one. */
  at: Date
}

/**
 * Handles a field's changes: the same one again, or an older one late, must end the same. False: it tells of something
 * that is not known yet, and is looked at again (1, 2, 5, 15, 60 s, then every 5 minutes for 24 h). A value of another
 * shape may throw the `ZodError`: it is dropped.
 */
export type ChangeHandler = (core: Core, change: Change) => Promise<boolean>

/** Not a field of the platform: `errors` of a number, without a message or a status. */
export const numberErrors = 'errors'

/** One entry a field; changes of all other fields are counted, and their callbacks kept. */
const changeHandlers: Record<string, ChangeHandler> = {
  [numberErrors]: reportErrors,
  message_template_status_update: changeTemplate,
  template_category_update: changeTemplate,
  message_template_quality_update: changeTemplate,
  message_template_components_update: changeTemplate,
  account_update: reportAccount,
  phone_number_quality_update: reportAccount,
  account_review_update: reportAccount,
  user_preferences: tellPreferences,
  user_id_update: updateUserIds,
  smb_message_echoes: recordEchoes,
  smb_app_state_sync: syncContacts,
  history: importHistory,
  business_capability_update: noteChange,
  phone_number_name_update: noteChange,
  account_alerts: noteChange,
  security: noteChange,
}

export const isKnownField = (field: string): boolean => field !== numberErrors && Object.hasOwn(changeHandlers, field)

const fieldsOfNumbers = new Set([
  'user_preferences',
  'user_id_update',
  'smb_message_echoes',
  'smb_app_state_sync',
  'history',
])

/** Whether the field's changes are always of one number: nothing can be made of one that names none. */
export const isOfNumber = (field: string): boolean => fieldsOfNumbers.has(field)

const Part = z.object({ field: z.string(), value: z.record(z.string(), z.unknown()), time: z.number().optional() })

/** The platform's second, and within it our own clock: changes of one second keep the order in which they came. */
function momentOf(time: number | undefined, receivedAt: Date) {
  if (time === undefined) return receivedAt
  const beginMs = time * 1000
  return new Date(Math.max(beginMs, Math.min(receivedAt.getTime(), beginMs + 999)))
}

/** False when the change has to wait for what it tells of. */
export async function applyChange(core: Core, item: WaitingItem): Promise<boolean> {
  const { field, value, time } = Part.parse(item.part)
  const handle = Object.hasOwn(changeHandlers, field) ? changeHandlers[field] : undefined
  if (!handle) return true
  const namesNumber = item.metadata['phone_number_id'] !== undefined
  return handle(core, {
    organizationId: item.organizationId,
    businessAccountId: item.businessAccountId,
    phoneNumberId: namesNumber ? item.phoneNumberId : null,
    senderPhone: namesNumber ? item.senderPhone : null,
    field,
    value,
    entryId: item.entryId,
    receivedAt: item.receivedAt,
    at: momentOf(time, item.receivedAt),
  })
}
