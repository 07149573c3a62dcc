import type { History, Ledger } from '../history.ts'
import type { Law } from '../law.ts'

/**
 * The lists agree with what was done: accepted = sent + failed, nothing waits, and every message that came, and all that was
 * made, is there once.
 */
export const counters: Law = (history) => [
  ...history.ledgers.flatMap((ledger) => breaches(ledger, history)),
  ...history.shelves.flatMap(({ name, made, listed }) => differences(name, made, listed)),
]

function breaches({ phone, outbound, inboundPosted, inboundListed, unread }: Ledger, { accepted, upstream }: History) {
  const ids = accepted.filter((send) => send.phone === phone).map(({ id }) => id)
  const calls = upstream.filter((send) => send.phone === phone).length
  const failed = outbound.filter(({ status }) => status === 'failed').length
  const waiting = outbound.filter(({ status }) => status === 'pending').length
  const sums = [
    [`${phone}: ${ids.length} accepted, ${calls} sent, ${failed} failed`, ids.length === calls + failed],
    [`${phone}: ${waiting} still wait`, waiting === 0],
  ] as const
  return [
    ...sums.filter(([, holds]) => !holds).map(([sentence]) => sentence),
    ...differences(
      `${phone} lists`,
      ids,
      outbound.map(({ id }) => id),
    ),
    ...differences(`${phone} lists as received`, inboundPosted, inboundListed),
    ...unread
      .filter(({ shown, written }) => shown !== written)
      .map(({ person, shown, written }) => `${phone}: ${shown} of ${person} are unread, and ${written} were written`),
  ]
}

function differences(what: string, wanted: string[], listed: string[]) {
  const [want, have] = [new Set(wanted), new Set(listed)]
  return [
    ...[...want].filter((id) => !have.has(id)).map((id) => `${what} no ${id}`),
    ...[...have].filter((id) => !want.has(id)).map((id) => `${what} ${id}, which nobody made`),
    ...(listed.length > have.size ? [`${what} something twice`] : []),
  ]
}
