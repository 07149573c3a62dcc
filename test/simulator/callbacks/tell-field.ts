import type { App } from '../app.ts'
import { asciiJson } from './ascii-json.ts'
import { renamePersonIds, wordsOf } from '../words.ts'

/** Sends one change of a business account: any field with its value. */
export function tellField({ schedule, settings }: App, businessAccountId: string, field: string, value: object) {
  schedule.now({ businessAccountId, field, value: asciiJson(renamePersonIds(value, wordsOf(settings.current))) })
}
