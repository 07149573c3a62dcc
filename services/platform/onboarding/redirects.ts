import type { Link } from '../setup-links/find-link.ts'

/** Where the browser goes in the end: the organization's own URL with the ids and the outcome as query parameters. */
export const successUrlOf = (link: Link, phoneNumberId: string | null): string | null =>
  withQuery(link.successRedirectUrl, link, 'success', phoneNumberId)

export const failureUrlOf = (link: Link, status: 'cancelled' | 'failed'): string | null =>
  withQuery(link.failureRedirectUrl, link, status, null)

function withQuery(base: string | null, link: Link, status: string, phoneNumberId: string | null) {
  if (base === null) return null
  const ours = new URLSearchParams({ customer_id: link.customerId, setup_link_id: link.id, status })
  if (phoneNumberId !== null) ours.set('phone_number_id', phoneNumberId)
  const url = new URL(base)
  // Theirs as they wrote them: a signature, or a `%20` that is read as a path is, does not survive being written anew.
  const theirs = url.search
    .slice(1)
    .split('&')
    .filter((pair) => pair !== '' && !ours.has(nameOf(pair)))
  url.search = [...theirs, ours].join('&')
  return url.href
}

const nameOf = (pair: string) => new URLSearchParams(pair).keys().next().value ?? ''
