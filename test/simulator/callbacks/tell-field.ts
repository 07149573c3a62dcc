import type { App } from '../app.ts'
import { asciiJson } from './ascii-json.ts'
import { renamePersonIds, wordsOf } from '../words.ts'

/** Sends one change of a business account: any field with its value; its entry is the account's, unless it is another's. */
export function tellField(
  { schedule, settings }: App,
  businessAccountId: string,
  field: string,
  value: object,
  entryId?: string,
) {
  schedule.now({
    businessAccountId,
    entryId,
    field,
    value: asciiJson(renamePersonIds(value, wordsOf(settings.current))),
  })
}
