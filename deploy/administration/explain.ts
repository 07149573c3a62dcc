import type { Caller } from '@app/shared/api/contract.ts'
import { call } from '@app/shared/bus/ask.ts'
import {
  explainDelivery,
  explainEvents,
  explainMessage,
  explainRequest,
  findRequestedMessages,
  type Moment,
} from '@app/shared/contracts/explain.ts'
import { Problem } from '@app/shared/api/problem.ts'
import type { Bus } from '../stack/bus.ts'

/** The whole life of a message, a delivery or a request, from the records of the services that had a part in it. */
export async function explain(bus: Bus, id: string, caller: Caller): Promise<{ id: string; history: Moment[] }> {
  const history = await historyOf(bus, id, caller)
  return { id, history: history.toSorted(byTime) }
}

/** How things stand now comes last. */
const byTime = (a: Moment, b: Moment) => (a.at ?? '9').localeCompare(b.at ?? '9')

async function historyOf(bus: Bus, id: string, caller: Caller): Promise<Moment[]> {
  if (id.startsWith('msg_')) return messageHistory(bus, id, caller)
  if (id.startsWith('req_')) return requestHistory(bus, id, caller)
  if (id.startsWith('wbd_')) return (await call(bus, explainDelivery, { body: { id } }, caller)).history
  throw new Error(`"${id}" is neither a message (msg_…), a delivery (wbd_…) nor a request (req_…).`)
}

async function requestHistory(bus: Bus, id: string, caller: Caller) {
  const request = await call(bus, explainRequest, { body: { id } }, caller)
  const { organization_id: organizationId, at, history } = request
  if (organizationId === null || at === null) return history
  const body = { request_id: id, organization_id: organizationId, at }
  const { ids } = await call(bus, findRequestedMessages, { body }, caller)
  const lives = await Promise.all(ids.map((message) => messageHistory(bus, message, caller, { withRequest: false })))
  return [...history, ...lives.flat()]
}

async function messageHistory(bus: Bus, id: string, caller: Caller, { withRequest = true } = {}) {
  const message = await call(bus, explainMessage, { body: { id } }, caller)
  const { organization_id: organizationId, event_ids: eventIds, request_id: requestId, history } = message
  const [told, asked] = await Promise.all([
    call(bus, explainEvents, { body: { organization_id: organizationId, event_ids: eventIds } }, caller),
    withRequest && requestId !== null ? requestMoments(bus, requestId, caller) : [],
  ])
  return [...asked, ...history.map((moment) => withId(moment, id)), ...told.history]
}

const withId = (moment: Moment, id: string): Moment => ({ ...moment, details: { id, ...moment.details } })

/** The log keeps 30 days, and is written a moment after the answer: a message may have no request there. */
async function requestMoments(bus: Bus, id: string, caller: Caller): Promise<Moment[]> {
  try {
    return (await call(bus, explainRequest, { body: { id } }, caller)).history
  } catch (err) {
    if (err instanceof Problem && err.status === 404) return []
    throw err
  }
}
