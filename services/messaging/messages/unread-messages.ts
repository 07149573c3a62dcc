/** The fields of an inbound message that say whether it counts as unread until it is read. */
export interface Counted {
  type: string
  unsupported: string | null
  source: string
}

/** Whether it was counted as unread. What was imported from the phone's app is from before the number was connected. */
export const hasCounted = ({ type, unsupported, source }: Counted) =>
  type !== 'reaction' && unsupported !== 'system' && source !== 'app'
