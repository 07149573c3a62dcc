import type { ServerResponse } from 'node:http'
import { between, oneByWeight, type Random, type Weighted } from '@app/test/faults/random.ts'
import { refuse, type TestMessaging } from './app.ts'
import { json } from './media-platform.ts'

/** What the platform does with a send. */
interface Mood {
  /** It has the message from then on. */
  accepts: boolean
  /** What it answers: a refusal's code, or nothing that anybody could understand. */
  answer: 'accepted' | 'broken off' | 'another page' | number
  waitMs?: number
}

const well: Mood = { accepts: true, answer: 'accepted' }

const moods: Weighted<Mood>[] = [
  [12, well],
  [4, { ...well, waitMs: 300 }],
  [1, { accepts: false, answer: 'broken off' }],
  [1, { accepts: true, answer: 'broken off' }],
  [1, { accepts: true, answer: 'another page' }],
  [2, { accepts: false, answer: 131000 }],
  [1, { accepts: false, answer: 130429 }],
  [1, { accepts: false, answer: 131056 }],
  [1, { accepts: false, answer: 131026 }],
  // It lacks a file that it had.
  [1, { accepts: false, answer: 131053 }],
]

/** What it does with an upload: anything may be repeated. */
const uploadMoods: Weighted<'well' | 'broken off' | 500 | 400>[] = [
  [6, 'well'],
  [1, 'broken off'],
  [1, 500],
  [1, 400],
]

/** A send that the platform got. */
export interface SeenSend {
  messageId: string
  text: string
  to: string
  answer: Mood['answer']
  /** The platform's id, if it has the message. */
  upstreamId: string | null
  /** When it came and when it was answered, `performance.now()`. */
  cameAt: number
  answeredAt: number
}

export interface MoodyPlatform {
  /** In the order in which they came. */
  seen: SeenSend[]
  /** How many uploads it has refused for good. */
  refusedUploads: () => number
  /** Accepts everything from now on. */
  calm: () => void
}

/** The platform of `messaging` does with each send what its mood is, by the chances of `random`. */
export function makeMoody(
  { respondWith, files }: Pick<TestMessaging, 'respondWith' | 'files'>,
  random: Random,
): MoodyPlatform {
  const seen: SeenSend[] = []
  let isCalm = false
  let refusedUploads = 0
  files.answerWith((call, response, origin) => {
    const mood = isCalm || call.method !== 'POST' ? 'well' : oneByWeight(random, uploadMoods)
    if (mood === 'well') return files.usual(call, response, origin)
    if (mood === 'broken off') return response.destroy()
    if (mood === 400) refusedUploads++
    json(response, { error: { message: 'no', code: mood === 400 ? 131053 : 131000, fbtrace_id: 'A' } }, mood)
  })
  respondWith((call, response, n) => {
    const mood = isCalm ? well : oneByWeight(random, moods)
    const { messageId, to } = call
    const text = call.text || String((call.body['image'] as { caption?: string } | undefined)?.caption)
    const upstreamId = mood.accepts ? `wamid.${messageId}.${n}` : null
    const one = {
      messageId,
      text,
      to,
      answer: mood.answer,
      upstreamId,
      cameAt: performance.now(),
      answeredAt: Infinity,
    }
    seen.push(one)
    const answer = () => {
      one.answeredAt = performance.now()
      if (typeof mood.answer === 'number') refuse(mood.answer, mood.answer === 131000 ? 500 : 400)(call, response, n)
      else answerIn(mood.answer, response, upstreamId)
    }
    setTimeout(answer, between(random, 0, mood.waitMs ?? 0))
  })
  return { seen, refusedUploads: () => refusedUploads, calm: () => void (isCalm = true) }
}

function answerIn(answer: 'accepted' | 'broken off' | 'another page', response: ServerResponse, id: string | null) {
  if (answer === 'broken off') return response.destroy()
  if (answer === 'another page') return response.writeHead(200, { 'content-type': 'text/html' }).end('<p>Hello</p>')
  const body = { messaging_product: 'whatsapp', contacts: [], messages: [{ id }] }
  return response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}
