import { headers, type MsgHdrs } from 'nats'
import { eventHeader } from '../events/stream.ts'
import { newId } from '../values/ids.ts'

/** How an event is published of which no more matters than that it comes. */
export function someEvent(): { headers: MsgHdrs } {
  const carrier = headers()
  carrier.set(eventHeader, JSON.stringify({ organization: 'org_1', event: newId('evt') }))
  return { headers: carrier }
}
