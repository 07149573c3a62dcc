import { maxEventBytes } from '@app/shared/events/events.ts'

export interface Version {
  content: string | null
  edited_at: string
}

/** Of what else the event tells. */
const otherBytes = 16 * 1024

/**
 * The newest versions, in their order, for which an event has room beside these contents. A long message that is edited often loses its
 * first edits so, in the event alone: with all of them it could not be told, and none of the later edits kept.
 */
export function fittingHistory(versions: readonly Version[], contents: readonly (string | null)[]): Version[] {
  let room = maxEventBytes - otherBytes - bytesOf(contents)
  const firstKept = versions.findLastIndex((version) => (room -= bytesOf(version) + 1) < 0) + 1
  return versions.slice(firstKept)
}

const bytesOf = (value: unknown) => Buffer.byteLength(JSON.stringify(value))
