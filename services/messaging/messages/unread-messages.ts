/** What of an inbound message says whether its conversation counts it as unread until it is read. */
export interface Counted {
  type: string
  unsupported: string | null
  source: string
}

/** As unread. What came from the phone's app is of before the number was connected. */
export const hasCounted = ({ type, unsupported, source }: Counted) =>
  type !== 'reaction' && unsupported !== 'system' && source !== 'app'
