import type { Link } from '../setup-links/find-link.ts'

/** Where the browser goes in the end: the organization's own URL with the ids and the outcome as query parameters. */
export const successUrlOf = (link: Link, phoneNumberId: string | null): string | null =>
  withQuery(link.successRedirectUrl, link, 'success', phoneNumberId)

export const failureUrlOf = (link: Link, status: 'cancelled' | 'failed'): string | null =>
  withQuery(link.failureRedirectUrl, link, status, null)

function withQuery(base: string | null, link: Link, status: string, phoneNumberId: string | null) {
  if (base === null) return null
  const url = new URL(base)
  url.searchParams.set('customer_id', link.customerId)
  url.searchParams.set('setup_link_id', link.id)
  url.searchParams.set('status', status)
  if (phoneNumberId !== null) url.searchParams.set('phone_number_id', phoneNumberId)
  return url.href
}
