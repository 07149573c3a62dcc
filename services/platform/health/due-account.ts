/** An account that this instance has claimed. */
export interface DueAccount {
  organizationId: string
  id: string
  phoneNumberId: string | null
  businessAccountId: string
  sealedToken: string
  version: string
  pollFailures: number
  /** The claim's mark, in the database's own words. */
  heldUntil: string
}
