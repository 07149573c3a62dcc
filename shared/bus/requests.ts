import { randomBytes, randomFillSync } from 'node:crypto'
import { ErrorCode, headers as noHeaders, type Msg, type MsgHdrs, type NatsConnection, NatsError } from 'nats'
import type { FailureName } from '../api/problem.ts'
import { type AskInWork, findLost, hear, isInWorkNote, type Unanswered } from './lost-questions.ts'
import { createSoon } from '../work/soon.ts'

/**
 * Sends a question and waits for its answer. Rejects when there is no connection, when nobody serves the subject, or when the
 * time is up. When question or answer were lost, one that may be repeated is asked once more, with the headers that it gives.
 */
export type Request = (
  subject: string,
  body: Uint8Array,
  headers: MsgHdrs,
  timeoutMs: number,
  headersOfRepeat?: (remainingMs: number) => MsgHdrs,
) => Promise<Msg>

interface Question extends Unanswered {
  token: string
  resolve: (message: Msg) => void
  reject: (err: unknown) => void
  /** performance.now */
  giveUpAt: number
  /** Asks again; absent where that might do a thing twice. */
  repeat: (() => void) | undefined
  isRepeated: boolean
  /** What the repeat was told while another try was in progress: perhaps our own first one. */
  inProgress?: Msg
  /** Its connection is gone; how long it waits for another one. */
  cutUntil?: number | undefined
}

/** Questions without an answer, by token. */
type Waiting = Map<string, Question>

const sweepMs = 50
/** How long those that may be repeated wait for another connection. */
const reconnectWithinMs = 2_000
const tokenBytes = 12

/**
 * Words that nobody guesses. Every service may write into the inboxes of those that ask it, so an answer counts by the
 * token of its question, which only the one that was asked has seen. The random bytes are drawn many at a time.
 */
function createTokens() {
  const pool = Buffer.alloc(tokenBytes * 512)
  let next = pool.length
  return () => {
    if (next === pool.length) {
      randomFillSync(pool)
      next = 0
    }
    return pool.toString('base64url', next, (next += tokenBytes))
  }
}

/**
 * Questions over one inbox. The client's own `request` makes an error with a stack for every answer that it gets (nats 2.29,
 * `RequestOne.cancel`) and a timer for each question: 7 % of the gateway's time. Here one timer watches all of them, and the
 * questions of one turn of the event loop leave in one write.
 */
export function createRequests(nc: NatsConnection, inboxPrefix: string) {
  // Not the client's own ids: who has seen one of those can tell the next, where the events come.
  const inbox = `${inboxPrefix}.${randomBytes(16).toString('base64url')}`
  const waiting: Waiting = new Map()
  const soon = createSoon()
  const newToken = createTokens()
  let isCut = false

  nc.subscribe(`${inbox}.*`, {
    callback: (_err, message) => {
      const token = message.subject.slice(inbox.length + 1)
      const asked = waiting.get(token)
      if (message.data.length === 0 && isInWorkNote(message)) return hear(asked, performance.now())
      if (asked && isReceipt(asked, message)) return
      // The first try answers to the same address.
      if (asked?.isRepeated && isInProgress(message)) return void (asked.inProgress = message)
      const one = take(waiting, token)
      if (isNobodyThere(message)) one?.reject(NatsError.errorForCode(ErrorCode.NoResponders))
      else one?.resolve(message)
    },
  })

  const request: Request = (subject, body, headers, timeoutMs, headersOfRepeat) =>
    new Promise((resolve, reject) => {
      // The client would keep it for the next connection, where it would come before all that must be done there first.
      if (isCut) return reject(NatsError.errorForCode(ErrorCode.Disconnect))
      const token = newToken()
      const reply = `${inbox}.${token}`
      const heardAt = performance.now()
      const giveUpAt = heardAt + timeoutMs
      const publish = (carrier: MsgHdrs) =>
        soon(() => {
          if (!mayLeave(waiting.get(token))) return
          try {
            nc.publish(subject, body, { headers: carrier, reply })
          } catch (err) {
            take(waiting, token)?.reject(err)
          }
        })
      const repeat = headersOfRepeat && (() => publish(headersOfRepeat(Math.floor(giveUpAt - performance.now()))))
      watch()
      waiting.set(token, { token, subject, reply, resolve, reject, heardAt, giveUpAt, repeat, isRepeated: false })
      publish(headers)
    })

  const askInWork: AskInWork = (subject, replies, timeoutMs) =>
    request(subject, Buffer.from(JSON.stringify(replies)), noHeaders(), timeoutMs)
  const watch = createWatch(waiting, askInWork)
  return {
    request,
    cut: () => {
      isCut = true
      cut(waiting)
    },
    resume: () => {
      isCut = false
      resume(waiting)
    },
  }
}

/** A question may leave unless it was given up before, or is asked over the next connection anyway. */
const mayLeave = (question: Question | undefined) => question !== undefined && question.cutUntil === undefined

const inProgress: FailureName = 'idempotency_in_progress'
const isInProgress = ({ headers }: Msg) => headers?.get('Nats-Service-Error') === inProgress

/** The server's own word for a subject that nobody serves. */
const isNobodyThere = ({ headers, data }: Msg) => data.length === 0 && headers?.code === 503

const receipts = ['{"stream":', '{"error":'].map((begin) => Buffer.from(begin))

/**
 * A stream that somebody lets record questions, too, tells whoever asked one that it has it, or why not. That is nobody's answer:
 * those without headers begin with `{"data":`.
 */
const isReceipt = ({ subject }: Question, { headers, data }: Msg) =>
  !headers && subject.startsWith('rpc.') && receipts.some((begin) => begin.equals(data.subarray(0, begin.length)))

/** What the repeat was told meanwhile says more than that no answer came. */
function giveUp(waiting: Waiting, { token }: Question, err: unknown) {
  const one = take(waiting, token)
  if (one?.inProgress) one.resolve(one.inProgress)
  else one?.reject(err)
}

function take(waiting: Waiting, token: string) {
  const one = waiting.get(token)
  waiting.delete(token)
  return one
}

/** To be called with each question: looks at all that wait, until none does. */
function createWatch(waiting: Waiting, askInWork: AskInWork) {
  let timer: NodeJS.Timeout | undefined
  function look() {
    sweep(waiting, askInWork)
    if (waiting.size > 0) return
    clearInterval(timer)
    timer = undefined
  }
  // By `setImmediate`: what came while this process was busy or frozen is read after its timers have run, and before that.
  return () => void (timer ??= setInterval(() => setImmediate(look), sweepMs).unref())
}

function sweep(waiting: Waiting, askInWork: AskInWork) {
  const now = performance.now()
  for (const one of waiting.values()) {
    const { giveUpAt, cutUntil = giveUpAt } = one
    if (Math.min(giveUpAt, cutUntil) <= now) giveUp(waiting, one, NatsError.errorForCode(ErrorCode.Timeout))
  }
  // What has no repeat waits for its whole time: an instance that is frozen has not lost it. Told that it was lost, the
  // caller would ask again, and the instance would still do what it was asked when it goes on.
  const harmless = waiting.values().filter(({ repeat }) => repeat)
  for (const one of findLost(harmless, askInWork, now)) {
    if (one.isRepeated) giveUp(waiting, one, new NatsError('nobody has the question any more', 'LOST'))
    else repeatOnce(one)
  }
}

/** Their connection is gone: the answers to what is out will not come any more. */
function cut(waiting: Waiting) {
  const cutUntil = performance.now() + reconnectWithinMs
  for (const one of waiting.values()) {
    if (one.repeat && !one.isRepeated) one.cutUntil = cutUntil
    else giveUp(waiting, one, NatsError.errorForCode(ErrorCode.Disconnect))
  }
}

/** There is a connection again. */
function resume(waiting: Waiting) {
  for (const one of waiting.values()) {
    if (one.cutUntil === undefined) continue
    one.cutUntil = undefined
    repeatOnce(one)
  }
}

function repeatOnce(one: Question) {
  one.isRepeated = true
  hear(one, performance.now())
  one.repeat?.()
}
