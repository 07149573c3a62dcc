/** A number as an organization's: it may have been another one's before. */
export interface OwnNumber {
  organizationId: string
  phoneNumberId: string
}
