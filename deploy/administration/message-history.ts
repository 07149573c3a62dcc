import {
  explainEvents,
  explainMessage,
  explainRequest,
  explains,
  findRequestedMessages,
  type Moment,
  standing,
  type ToldEvent,
} from '@app/shared/contracts/explain.ts'
import { Problem } from '@app/shared/api/problem.ts'
import { timeOf } from '@app/shared/values/ids.ts'
import { type Asking, orNull } from './asking.ts'

/** Of a message that is gone, what is known of its deliveries. */
export async function messageOrEventHistory(asking: Asking, id: string): Promise<Moment[]> {
  const message = isEvent.test(id) ? null : await orNull(messageHistory(asking, id))
  return message ?? eventHistory(asking, id)
}

/** Such as `evt_…`, `msg_…:sent` and `wamid.…:delivered`. */
const isEvent = /^evt_|:[a-z]+$/

/** Of an event, or of a message that is gone: its deliveries are kept for 90 days, whatever becomes of the message. */
async function eventHistory(asking: Asking, id: string): Promise<Moment[]> {
  const ids = id.startsWith('msg_') && !isEvent.test(id) ? [`${id}:sent`, `${id}:failed`] : [id]
  const { history: before, ...whose } = id.startsWith('evt_')
    ? await recordedEvent(asking, id)
    : await toldOf(asking, id)
  const deliveries = await asking.ask(explainEvents, { ...whose, event_ids: ids })
  const history = [...before, ...(deliveries?.history ?? [])]
  if (history.length === 0) throw new Problem('resource_not_found')
  return ids.includes(id) || asking.unanswered.size > 0
    ? history
    : [...history, standing('was deleted: it was older than its organization keeps messages')]
}

/** What is known of an event before its deliveries; and, once it is told, whom it was told to. */
interface Before {
  organization_id?: string
  told?: ToldEvent[]
  history: Moment[]
}

/** As whoever has made it recorded it. */
async function recordedEvent({ ask }: Asking, id: string): Promise<Before> {
  const asked = Object.values(explains).map(({ explainRecordedEvent: one }) => ask(one, { id }))
  const answers = (await Promise.all(asked)).filter((answer) => answer !== null)
  const found = answers.find(({ event }) => event !== null)
  if (!found?.event) return { history: answers.flatMap(({ history }) => history) }
  const { organization_id, type, phone_number_id, except, is_published: isPublished } = found.event
  const told = type !== null && isPublished ? [{ id, type, phone_number_id, except }] : []
  return { organization_id, told, history: found.history }
}

/** As the message that it tells of has it, in `msg_…:sent` and `wamid.…:delivered`. */
async function toldOf({ ask }: Asking, id: string): Promise<Before> {
  if (!isEvent.test(id)) return { history: [] }
  const message = await orNull(ask(explainMessage, { id: id.slice(0, id.lastIndexOf(':')) }))
  const told = message?.told?.filter((event) => event.id === id) ?? []
  return message && told.length > 0 ? { organization_id: message.organization_id, told, history: [] } : { history: [] }
}

/** A request that the log does not have (any more), is known by the messages that it made. */
export async function requestHistory(asking: Asking, id: string): Promise<Moment[]> {
  const request = await orNull(asking.ask(explainRequest, { id }))
  if (request?.organization_id === null) return request.history
  const at = request?.at ?? timeOf(id).toISOString()
  const body = { request_id: id, organization_id: request?.organization_id, at }
  const { ids } = (await asking.ask(findRequestedMessages, body)) ?? { ids: [] }
  if (!request && ids.length === 0) throw new Problem('resource_not_found')
  const lives = await Promise.all(ids.map((message) => messageHistory(asking, message, { withRequest: false })))
  return [...(request?.history ?? []), ...lives.flatMap((life) => life ?? [])]
}

async function messageHistory(asking: Asking, id: string, { withRequest = true } = {}) {
  const message = await asking.ask(explainMessage, { id })
  if (!message) return null
  const { organization_id, event_ids, told, request_id: requestId, history } = message
  const [deliveries, asked] = await Promise.all([
    asking.ask(explainEvents, { organization_id, event_ids, told }),
    withRequest && requestId !== null ? requestMoments(asking, requestId) : [],
  ])
  return [...asked, ...history.map((moment) => withId(moment, message.id ?? id)), ...(deliveries?.history ?? [])]
}

const withId = (moment: Moment, id: string): Moment => ({ ...moment, details: { id, ...moment.details } })

/** The log keeps 30 days, and is written a moment after the answer: a message may have no request there. */
export async function requestMoments({ ask }: Asking, id: string): Promise<Moment[]> {
  return (await orNull(ask(explainRequest, { id })))?.history ?? []
}
