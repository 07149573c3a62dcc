import { setTimeout as sleep } from 'node:timers/promises'
import { request as undiciRequest } from 'undici'
import type { Json } from '../journeys/client.ts'
import { checkAnswer } from '../journeys/openapi-check.ts'
import type { Request } from './request.ts'

interface Answer {
  status: number
  headers: Record<string, string | string[] | undefined>
  text: string
}

/** How often, and how long after, a request is asked again when the stack says that it is busy. */
const tries = 20

/** Sends a request, and again while the answer is a proper 503. */
export async function send(base: string, key: string, request: Request): Promise<Answer> {
  for (let attempt = 1; ; attempt++) {
    const answer = await ask(base, key, request)
    if (answer.status !== 503 || attempt === tries) return answer
    if (!/^[1-9]\d*$/.test(String(answer.headers['retry-after']))) throw new Error('a 503 without Retry-After')
    await sleep(250)
  }
}

async function ask(base: string, key: string, { operation, path, headers, body }: Request): Promise<Answer> {
  const answer = await undiciRequest(base + path, {
    method: operation.method,
    headers: { authorization: `Bearer ${key}`, ...headers },
    body,
  })
  return { status: answer.statusCode, headers: answer.headers, text: await answer.body.text() }
}

/** What must hold of every answer; throws with what does not. */
export function checkLaws(request: Request, { status, headers, text }: Answer): void {
  const { operation, expected } = request
  if (status >= 500) throw new Error(`answered ${status}: ${text}`)
  const id = String(headers['x-request-id'])
  if (!/^req_[0-9A-Z]{26}$/.test(id)) throw new Error(`X-Request-Id is ${id}`)
  if (status !== 304) checkBody(request, status, headers, text)
  if (expected.status !== undefined && status !== expected.status)
    throw new Error(`answered ${status} where ${expected.status} is due: ${text.slice(0, 500)}`)
  if (operation.isPublic || status === 401 || status === 431) return
  for (const name of [
    'ratelimit',
    'ratelimit-policy',
    'x-ratelimit-limit',
    'x-ratelimit-remaining',
    'x-ratelimit-reset',
  ])
    if (headers[name] === undefined) throw new Error(`the header ${name} is not there`)
}

function checkBody({ operation, what, expected }: Request, status: number, headers: Answer['headers'], text: string) {
  if (headers['content-type'] !== 'application/json; charset=utf-8')
    throw new Error(`its type is ${String(headers['content-type'])}`)
  const json = JSON.parse(text) as Json
  // A path that names nothing is held against the operation that it was made of.
  checkAnswer(operation.method, operation.path, status, json)
  if (operation.path !== '/openapi.json' && headers['idempotent-replayed'] === undefined) {
    const id: unknown = json.request_id ?? json.error?.request_id
    if (id !== headers['x-request-id'])
      throw new Error(`request_id is ${String(id)}, X-Request-Id ${String(headers['x-request-id'])}`)
  }
  if (json.error === undefined) return
  const place = `${operation.name} ${json.error.param}`
  if (expected.isValid && status === 400 && !beyondSchemas.test(place))
    throw new Error(`refused what its schema takes: ${text}`)
  if (expected.param === undefined) return
  if (!names(json.error.param, expected.param, what) && !beforeWhatIsSpoilt.test(place))
    throw new Error(`param is ${json.error.param} where ${expected.param} is due: ${text}`)
}

/** What a schema cannot say: rules between fields, blanks at an end, the platform's own of templates. Operation and `param`. */
const beyondSchemas =
  /^(POST|PATCH) \S+(templates\S* |messages (to|template\b|interactive\.action\.buttons\[\d\]\.reply\.id)|contacts phone_number|conversations\/\S+ status|setup_links\/\S+ success_redirect_url|replays until)/

/** A rule between the fields of one template parameter, which may be broken in a parameter that comes before the spoilt one. */
const beforeWhatIsSpoilt = /^POST \S+ template\.components\[\d+\]\.parameters\[\d+\]\.\w+$/

/** The field itself, or of an empty object what is missing in it. */
const names = (param: string | undefined, expected: string, what: string) =>
  param === expected || (what.startsWith('an empty object ') && param?.startsWith(`${expected}.`))
