import { headers, type Msg, type NatsConnection } from 'nats'
import { isInbox } from './inbox.ts'

// A question is lost when the process that had it dies, or a nats-server on its way does: nothing tells its asker. So an
// asker that has long heard nothing asks all instances of the service which of its questions they have in work. Those that
// nobody has, while somebody answers, are lost. An instance that is merely slow has not answered yet, so nothing is lost
// there, and a service in trouble is not asked twice.

/** Longer than nearly every answer takes. */
const silentMs = 1_000
/** The time within which instances say which questions they have in work. */
const tellWithinMs = 1_000

export const inWorkSubject = (service: string): string => `rpc.${service}.in-work`

const name = 'Svc-In-Work'
const note = headers()
note.set(name, '1')

/** Whether a message without a body says that the question is in work. */
export const isInWorkNote = ({ headers: carrier }: Msg): boolean => carrier?.has(name) ?? false

/** Tells askers which of their questions, known by where the answer goes, are in work here. */
export function tellInWork(nc: NatsConnection, service: string, inWork: () => ReadonlySet<string>): () => void {
  const subscription = nc.subscribe(inWorkSubject(service), {
    callback: (err, message) => {
      if (err || !isInbox(message.reply)) return
      const here = inWork()
      for (const reply of repliesIn(message)) if (here.has(reply)) nc.publish(reply, undefined, { headers: note })
      message.respond()
    },
  })
  return () => subscription.unsubscribe()
}

/** Empty for a message that is no such list: the stream can be told to send an event to any address. */
function repliesIn(message: Msg): string[] {
  try {
    const replies: unknown = message.json()
    return Array.isArray(replies) ? replies.filter((reply) => typeof reply === 'string') : []
  } catch {
    return []
  }
}

/** A question without an answer. */
export interface Unanswered {
  subject: string
  reply: string
  /** performance.now of the moment when it was asked, or was last said to be in work. */
  heardAt: number
  doubt?: Doubt | undefined
}

interface Doubt {
  judgeAt: number
  /** Whether an instance has answered at all. */
  isAnswered: boolean
}

/** Asks a service which of these are in work there; resolves with the first answer of an instance. */
export type AskInWork = (subject: string, replies: string[], timeoutMs: number) => Promise<unknown>

/** Which of the questions are lost; to be called again and again. Each is told once, and watched anew after that. */
export function findLost<Q extends Unanswered>(questions: Iterable<Q>, askInWork: AskInWork, now: number): Q[] {
  const silent: Q[] = []
  const lost: Q[] = []
  for (const question of questions) {
    const { doubt, heardAt, subject } = question
    if (!doubt && now - heardAt >= silentMs && subject.startsWith('rpc.')) silent.push(question)
    if (!doubt || doubt.judgeAt > now) continue
    if (doubt.isAnswered) lost.push(question)
    hear(question, now)
  }
  for (const [service = '', some] of Map.groupBy(silent, ({ subject }) => subject.split('.')[1])) {
    const doubt: Doubt = { judgeAt: now + tellWithinMs, isAnswered: false }
    for (const question of some) question.doubt = doubt
    const replies = some.map(({ reply }) => reply)
    askInWork(inWorkSubject(service), replies, tellWithinMs).then(
      () => (doubt.isAnswered = true),
      // Nobody serves it, or everybody is slow: then nobody can tell.
      () => {},
    )
  }
  return lost
}

/** It is in work, or was asked anew. */
export function hear(question: Unanswered | undefined, now: number): void {
  if (!question) return
  question.heardAt = now
  question.doubt = undefined
}
