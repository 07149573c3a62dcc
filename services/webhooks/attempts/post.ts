import type { IncomingHttpHeaders } from 'node:http'
import { StringDecoder } from 'node:string_decoder'
import { EgressError, failureOf, type NamedFailure } from '@app/shared/outside/egress-error.ts'
import { type Posted, postOnce } from '@app/shared/outside/post-once.ts'
import { createSoon } from '@app/shared/work/soon.ts'
import type { Dispatcher } from 'undici'

/** Attempts that begin in one turn of the event loop leave one right after the other: 1.1 to 1.4 times the deliveries. */
const soon = createSoon()

/** How much of an answer's body is read, so that most connections can be used again, and how much is kept. */
const readBytes = 16 * 1024
const snippetBytes = 4 * 1024

export interface Post {
  url: string
  /** Name, value, name, value. */
  headers: string[]
  body: Buffer
  timeoutMs: number
  /** Whether it may still begin, when there is a connection. */
  mayBegin: () => boolean
}

/** What the endpoint answered, or why it did not. */
export type Answer =
  | { status: number; retryAfter: string | undefined; snippet: string }
  | { status: null; failure: NamedFailure }

/** A kept connection that ends does so within a round trip; an endpoint that had the call for longer has failed at it. */
const endOfKeptMs = 1_000
/** The next connection may have been kept, too, and be at its end. */
const mostCalls = 3

/**
 * The outcome is decided by the answer's headers: a body that breaks off, or goes on for ever, changes nothing. A call that met the end of
 * a kept connection is made again at once, on another. Null: it was too late to begin, and the endpoint was told nothing.
 */
export async function post(dispatcher: Dispatcher, asked: Post): Promise<Answer | null> {
  const until = performance.now() + asked.timeoutMs
  let before: Posted | null = null
  for (let calls = 1; ; calls++) {
    const startedAt = performance.now()
    const posted = await postSoon(dispatcher, { ...asked, timeoutMs: until - startedAt })
    if (posted === null) return before && answerOf(before)
    const isQuick = performance.now() - startedAt < endOfKeptMs
    if (!isEndOfKept(posted) || !isQuick || calls === mostCalls) return answerOf(posted)
    before = posted
  }
}

const isEndOfKept = ({ head, err }: Posted) => head === null && err instanceof EgressError && err.isOfKept

async function postSoon(dispatcher: Dispatcher, asked: Post): Promise<Posted | null> {
  const most = { readBytes, keptBytes: snippetBytes }
  let isLate = false
  const mayBegin = () => !(isLate = !asked.mayBegin())
  const begin = () => postOnce(dispatcher, { ...asked, mayBegin, most })
  const posted = await new Promise<Posted>((resolve) => soon(() => resolve(begin())))
  return isLate ? null : posted
}

function answerOf({ head, body, err }: Posted): Answer {
  if (!head) return { status: null, failure: failureOf(err) }
  return { status: head.status, retryAfter: one(head.fields, 'retry-after'), snippet: snippetOf(body) }
}

function one(fields: IncomingHttpHeaders, name: string) {
  const value = fields[name]
  return Array.isArray(value) ? value[0] : value
}

/** Text that Postgres can hold: broken UTF-8 is replaced, U+0000 dropped. A character that our own cut broke is left out. */
function snippetOf(body: Buffer) {
  const text = body.length < snippetBytes ? body.toString('utf8') : new StringDecoder('utf8').write(body)
  return text.replaceAll('\0', '')
}
