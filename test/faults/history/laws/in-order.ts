import type { AcceptedSend } from '../history.ts'
import type { Law } from '../law.ts'

/** Of two sends to one conversation, the one that was answered before the other left reaches the platform first. */
export const inOrder: Law = ({ accepted, upstream }) => {
  const places = new Map(upstream.map(({ messageId }, place) => [messageId, place]))
  const byConversation = Map.groupBy(
    accepted.filter(({ id }) => places.has(id)),
    ({ conversation }) => conversation,
  )
  return [...byConversation].flatMap(([conversation, sends]) => breaches(conversation, sends, places))
}

function breaches(conversation: string, sends: AcceptedSend[], places: Map<string, number>) {
  const arrived = sends.toSorted((a, b) => (places.get(a.id) ?? 0) - (places.get(b.id) ?? 0))
  // Of all that arrived so far, the one that left last: whoever was answered before that is late.
  let last: AcceptedSend | undefined
  const late: string[] = []
  for (const send of arrived) {
    if (last && send.acceptedAt < last.startedAt) late.push(`${send.id} after ${last.id} in ${conversation}`)
    if (!last || send.startedAt > last.startedAt) last = send
  }
  return late
}
