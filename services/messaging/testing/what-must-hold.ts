import type { SeenSend } from './moody-platform.ts'
import type { AcceptedSend, Scene, Tenant, Written } from './scene.ts'

/** A message in the end. */
interface Ended {
  id: string
  direction: string
  content: string | null
  status: string
  code: string | null
  upstreamId: string | null
  isRevoked: boolean
  edits: { id: string }[] | null
  attempts: { number: number; outcome: string; code: number | null; isUpload: boolean }[]
}

/** What is there of an organization in the end. */
interface Found {
  messages: Ended[]
  /** How often each event was recorded, by its id; edits and revocations by what and of which message they tell. */
  events: Map<string, number>
  /** What was counted against its quota. */
  counted: number
}

/** Everything that should hold once all has settled and does not, each in words with its ids. */
export async function findBroken(scene: Scene): Promise<string[]> {
  const broken = []
  for (const tenant of scene.tenants) {
    const found = await find(scene, tenant)
    const byId = new Map(found.messages.map((message) => [message.id, message]))
    const seen = Map.groupBy(scene.platform.seen, ({ messageId }) => messageId)
    for (const send of tenant.sends) {
      const message = byId.get(send.id)
      const of: Of = { scene, tenant, send, message, calls: seen.get(send.id) ?? [], events: found.events }
      broken.push(...wrongSend(of).map((what) => `${send.id}: ${what}`))
    }
    broken.push(...wrongOrder(scene, tenant, seen), ...wrongCounts(tenant, found), ...wrongWritten(tenant, found))
    broken.push(...wrongEvents(scene, tenant, found))
  }
  return broken
}

async function find({ sql }: Scene, { state: { organization_id: organizationId } }: Tenant): Promise<Found> {
  const messages = await sql<Ended[]>`
    select id, direction, content, status, error ->> 'code' as code, upstream_id, revoked_at is not null as is_revoked, edits,
      (
        select coalesce(json_agg(json_build_object('number', attempt, 'outcome', outcome, 'code', upstream_code, 'isUpload', coalesce(starts_with(detail, 'upload:'), false)) order by attempt), '[]')
        from send_attempts where organization_id = m.organization_id and message_id = m.id
      ) as attempts
    from messages m where organization_id = ${organizationId} order by id
  `
  const rows = await sql<{ id: string; subject: string; payload: Uint8Array }[]>`
    select split_part(id, ':', 1) as organization, substr(id, strpos(id, ':') + 1) as id, subject, payload from outbox
    where starts_with(id, ${organizationId})
  `
  const events = new Map<string, number>()
  for (const { id, subject, payload } of rows) {
    const name = /message-(edited|revoked)$/.test(subject) ? `${subject} ${messageOf(payload)}` : id
    events.set(name, (events.get(name) ?? 0) + 1)
  }
  const [month] = await sql<{ count: number }[]>`
    select coalesce(sum(count), 0)::int as count from monthly_sends where organization_id = ${organizationId}
  `
  return { messages: [...messages], events, counted: month?.count ?? 0 }
}

const messageOf = (payload: Uint8Array) =>
  /"message_id":"(\w+)"/.exec(Buffer.from(payload).toString())?.[1] ?? 'of nothing'

interface Of {
  scene: Scene
  tenant: Tenant
  send: AcceptedSend
  message: Ended | undefined
  calls: SeenSend[]
  events: Found['events']
}

function wrongSend(of: Of): string[] {
  const { message, send } = of
  if (!message) return ['it was accepted and is not there']
  const words = message.content === send.text ? [] : [`its text is ${message.content}`]
  return [...words, ...wrongCalls(of), ...wrongEnd(of, message), ...wrongAttempts(of, message)]
}

const mayBeThere = ({ answer }: SeenSend) => typeof answer !== 'number'

/** Nothing is sent again that may be there, unless the organization wants that. */
function* wrongCalls({ scene, tenant, send, calls }: Of) {
  const first = calls.findIndex(mayBeThere)
  const isSentAgain = tenant.state.settings.unknown_outcome === 'resend'
  if (!isSentAgain && first !== -1 && first < calls.length - 1) yield `it was sent again: ${answersOf(calls)}`
  const taken = calls.filter(({ answer }) => answer === 'accepted').length
  if (taken > 1 && !scene.abandoned.has(send.id)) yield `it was accepted ${taken} times: ${answersOf(calls)}`
  if (calls.some(({ text, to }) => text !== send.text || to !== `+${send.person}`)) yield 'another message was sent'
}

const answersOf = (calls: SeenSend[]) => calls.map(({ answer }) => answer).join(', ')

/** What the platform has told of one of its ids, the furthest. */
const ranks = ['sent', 'delivered', 'read', 'failed']

/** It is as far as was told of it; what the platform never told has failed, for a reason that there was. */
function* wrongEnd({ scene, tenant, send, calls, events }: Of, message: Ended) {
  const known = calls.filter(
    ({ upstreamId, answer }) => upstreamId !== null && (answer === 'accepted' || scene.told.has(upstreamId)),
  )
  const wasTold = { sent: events.get(`${send.id}:sent`) ?? 0, failed: events.get(`${send.id}:failed`) ?? 0 }
  if (known.length > 0) {
    const told = known.map(({ upstreamId }) => [...(scene.told.get(upstreamId ?? '') ?? [])])
    const alive = told.filter((words) => !words.includes('failed'))
    const furthest = Math.max(0, ...(alive.length > 0 ? alive : told).flat().map((word) => ranks.indexOf(word)))
    if (message.status !== ranks[furthest]) yield `it is ${message.status}, and ${JSON.stringify(told)} was told`
    if (wasTold.sent !== 1) yield `that it was sent is told ${wasTold.sent} times`
    if (wasTold.failed > 0 && !mayBeUnknown(scene, send, calls)) yield 'it is told as failed, and was sent'
    return
  }
  if (message.status !== 'failed') yield `it is ${message.status}: ${answersOf(calls)}`
  else if (!hasReason(message, { scene, tenant, send, calls }))
    yield `it failed as ${message.code}: ${answersOf(calls)}`
  if (wasTold.sent !== 0 || wasTold.failed !== 1) yield `it failed, and is told ${JSON.stringify(wasTold)}`
}

const mayBeUnknown = ({ abandoned }: Scene, { id }: AcceptedSend, calls: SeenSend[]) =>
  abandoned.has(id) || calls.some(({ answer }) => answer === 'broken off' || answer === 'another page')

/** Tries after which the first of the passing refusals are final. */
const fewTries = 3

function hasReason(
  { code, attempts }: Ended,
  { scene, tenant, send, calls }: Pick<Of, 'scene' | 'tenant' | 'send' | 'calls'>,
) {
  if (code === 'delivery_unknown') return mayBeUnknown(scene, send, calls)
  if (code === 'media_upload_failed')
    return calls.some(({ answer }) => answer === 131053) || scene.platform.refusedUploads() > 0
  if (code === 'recipient_unreachable') return calls.some(({ answer }) => answer === 131026)
  if (code === 'upstream_unavailable' || code === 'upstream_rate_limited') return attempts.length >= fewTries
  return tenant.refusals.has(code ?? '')
}

/** Each call stands there as the platform answered it. */
function* wrongAttempts({ calls }: Of, { attempts }: Ended) {
  const recorded = attempts.filter(({ isUpload }) => !isUpload).map(({ outcome, code }) => code ?? outcome)
  const made = calls.map(({ answer }) =>
    typeof answer === 'number' ? answer : answer === 'accepted' ? 'sent' : 'unknown',
  )
  if (JSON.stringify(recorded) !== JSON.stringify(made)) yield `attempts ${recorded.join()}, and calls ${made.join()}`
  if (attempts.some(({ number }, n) => number !== n + 1))
    yield `attempts ${attempts.map(({ number }) => number).join()}`
}

/** What somebody was sent came in the order in which it was accepted: the next one once the one before was over. */
function* wrongOrder({ abandoned }: Scene, { state, sends, people }: Tenant, seen: Map<string, SeenSend[]>) {
  if (state.settings.ordering === 'relaxed') return
  for (const person of people) {
    const called = sends.filter((send) => send.person === person && seen.has(send.id) && !abandoned.has(send.id))
    for (const [n, { id }] of called.entries()) {
      const before = called[n - 1]
      const last = before && seen.get(before.id)?.at(-1)
      const first = seen.get(id)?.[0]
      if (before && last && first && first.cameAt < last.answeredAt) yield `${id} came before the end of ${before.id}`
    }
  }
}

function* wrongCounts({ sends, written }: Tenant, { messages, counted }: Found) {
  const [outbound, inbound] = ['outbound', 'inbound'].map(
    (way) => messages.filter((one) => one.direction === way).length,
  )
  const fromApp = written.filter(({ isFromApp }) => isFromApp).length
  if (outbound !== sends.length + fromApp)
    yield `${sends.length} sends and ${fromApp} of the app, and ${outbound} are there`
  if (counted !== sends.length) yield `${sends.length} sends were accepted, and ${counted} are counted`
  if (inbound !== written.length - fromApp) yield `${written.length - fromApp} were written, and ${inbound} are there`
}

/** What was written is there and told once, with the newest of its words, or the first ones if it was taken back. */
function* wrongWritten({ written }: Tenant, { messages, events }: Found) {
  const byUpstreamId = new Map(messages.map((message) => [message.upstreamId, message]))
  for (const one of written) {
    const message = byUpstreamId.get(one.upstreamId)
    const name = `${one.upstreamId}:`
    if (!message) {
      yield `${name} it was written and is not there`
      continue
    }
    const { isFromApp, isRevoked, edits } = one
    const told = {
      itself: events.get(isFromApp ? `${message.id}:sent` : one.upstreamId) ?? 0,
      revoked: events.get(`event.messaging.message-revoked ${message.id}`) ?? 0,
      edited: events.get(`event.messaging.message-edited ${message.id}`) ?? 0,
    }
    // What the app changes of its own is not told.
    const expected = { itself: 1, revoked: Number(isRevoked && !isFromApp), edited: isFromApp ? 0 : edits.length }
    if (JSON.stringify(told) !== JSON.stringify(expected)) {
      yield `${name} of ${JSON.stringify(expected)} is told ${JSON.stringify(told)}`
    }
    if (message.isRevoked !== isRevoked) yield `${name} that it was revoked is ${message.isRevoked}`
    if (message.content !== contentOf(one)) yield `${name} it reads ${message.content}, and not ${contentOf(one)}`
  }
}

function contentOf({ text, edits, isRevoked }: Written) {
  const inOrder = edits.toSorted((a, b) => a.at - b.at || (a.id < b.id ? -1 : 1))
  return isRevoked ? text : (inOrder.at(-1)?.text ?? text)
}

/** Each word of the platform is told once. */
function* wrongEvents({ told, platform }: Scene, { people }: Tenant, { events }: Found) {
  const own = platform.seen.filter(({ to }) => people.includes(to.slice(1)))
  for (const { upstreamId } of own) {
    for (const word of told.get(upstreamId ?? '') ?? []) {
      const times = events.get(`${upstreamId}:${word}`) ?? 0
      if (times !== 1) yield `${upstreamId}: ${word} is told ${times} times`
    }
  }
}
