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
import { timeOf } from '@app/shared/values/ids.ts'
import type { Bus } from '../stack/bus.ts'

/** The whole life of a message, a delivery, an event or a request, from the records of the services that had a part in it. */
export async function explain(bus: Bus, id: string, caller: Caller): Promise<{ id: string; history: Moment[] }> {
  const history = await historyOf(bus, id, caller)
  return { id, history: history.toSorted(byTime) }
}

/** How things stand now comes last. */
const byTime = (a: Moment, b: Moment) => (a.at ?? '9').localeCompare(b.at ?? '9')

async function historyOf(bus: Bus, id: string, caller: Caller): Promise<Moment[]> {
  if (id.startsWith('req_')) return requestHistory(bus, id, caller)
  if (id.startsWith('wbd_')) return (await call(bus, explainDelivery, { body: { id } }, caller)).history
  if (isOfOtherKind.test(id)) {
    throw new Error(
      `"${id}" is neither a message (msg_…, or the platform's id), a delivery (wbd_…), an event (evt_…) nor a request (req_…).`,
    )
  }
  const message = isEvent.test(id) ? null : await orNull(messageHistory(bus, id, caller))
  if (message) return message
  return eventHistory(bus, id, caller)
}

/** Ids of ours of which there is nothing to tell. */
const isOfOtherKind = /^(?!msg|evt)[a-z]{2,4}_/
/** Such as `evt_…`, `msg_…:sent` and `wamid.…:delivered`. */
const isEvent = /^evt_|:[a-z]+$/

/** Of an event, or of a message that is gone: its deliveries are kept for 90 days, whatever becomes of the message. */
async function eventHistory(bus: Bus, id: string, caller: Caller): Promise<Moment[]> {
  const ids = id.startsWith('msg_') && !isEvent.test(id) ? [`${id}:sent`, `${id}:failed`] : [id]
  const { history } = await call(bus, explainEvents, { body: { event_ids: ids } }, caller)
  if (history.length === 0) throw new Problem('resource_not_found')
  return ids.includes(id)
    ? history
    : [...history, { at: null, what: 'was deleted: it was older than its organization keeps messages' }]
}

/** A request that the log does not have (any more), is known by the messages that it made. */
async function requestHistory(bus: Bus, id: string, caller: Caller) {
  const request = await orNull(call(bus, explainRequest, { body: { id } }, caller))
  if (request?.organization_id === null) return request.history
  const at = request?.at ?? timeOf(id).toISOString()
  const body = { request_id: id, organization_id: request?.organization_id, at }
  const { ids } = await call(bus, findRequestedMessages, { body }, caller)
  if (!request && ids.length === 0) throw new Problem('resource_not_found')
  const lives = await Promise.all(ids.map((message) => messageHistory(bus, message, caller, { withRequest: false })))
  return [...(request?.history ?? []), ...lives.flat()]
}

async function messageHistory(bus: Bus, id: string, caller: Caller, { withRequest = true } = {}) {
  const message = await call(bus, explainMessage, { body: { id } }, caller)
  const { organization_id, event_ids, told, request_id: requestId, history } = message
  const [deliveries, asked] = await Promise.all([
    call(bus, explainEvents, { body: { organization_id, event_ids, told } }, caller),
    withRequest && requestId !== null ? requestMoments(bus, requestId, caller) : [],
  ])
  return [...asked, ...history.map((moment) => withId(moment, message.id ?? id)), ...deliveries.history]
}

const withId = (moment: Moment, id: string): Moment => ({ ...moment, details: { id, ...moment.details } })

/** The log keeps 30 days, and is written a moment after the answer: a message may have no request there. */
async function requestMoments(bus: Bus, id: string, caller: Caller): Promise<Moment[]> {
  return (await orNull(call(bus, explainRequest, { body: { id } }, caller)))?.history ?? []
}

async function orNull<T>(asked: Promise<T>): Promise<T | null> {
  try {
    return await asked
  } catch (err) {
    if (err instanceof Problem && err.status === 404) return null
    throw err
  }
}
