import { randomInt } from 'node:crypto'
import type { App } from '../app.ts'
import { badParameter, GraphError } from '../graph/graph-error.ts'
import type { GraphRequest } from '../graph/graph-request.ts'
import { requiredWord } from '../graph/params.ts'
import type { PhoneNumber } from '../numbers/numbers.ts'

/** `POST /{v}/{phone_number_id}/smb_app_data`: asks the phone's app for contacts or history, each once. */
export function requestSync({ syncs }: App, number: PhoneNumber, input: GraphRequest) {
  const kind = requiredWord(input.message, 'sync_type', ['smb_app_state_sync', 'history'])
  if (!number.isInBusinessApp) throw badParameter('The number is not used in the business app.')
  const key = `${number.phoneNumberId} ${kind}`
  if (syncs.has(key)) throw new GraphError(2_593_107)
  syncs.add(key)
  return { messaging_product: 'whatsapp', request_id: String(randomInt(1e9, 9e9)) }
}
