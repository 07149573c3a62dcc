import { ErrorCode, type Msg, NatsError } from 'nats'
import { type CallHeader, writeCall } from './call-header.ts'
import type { Caller, Page, Rpc } from '../api/contract.ts'
import { type FailureName, failures, Problem } from '../api/problem.ts'
import type { Service } from '../service/service.ts'
import type { z } from 'zod'

/** An answer as it came, unparsed. */
export interface Reply {
  /** Null: the contract's own success status. */
  status: number | null
  body: Uint8Array
  replayed: boolean
  /** The failure's name, when it is one; then `body` is the error envelope. */
  failure: FailureName | null
  retryAfterSeconds: number | null
  /** Where a redirection leads. */
  location: string | null
}

/** What asking needs of a service. */
type Asking = Pick<Service, 'request' | 'isConnected' | 'tracer'>

/**
 * Sends a request as bytes and returns the answer as bytes, a failure too. Throws `service_unavailable`:
 * - when no instance serves the subject, or the bus is away: then surely nobody got the request;
 * - when no answer came within `remainingMs`, or the request or its answer was lost with a process that died: then nobody knows
 *   whether it was done. A lost request that may be repeated (`isRepeatable`) is sent once more first.
 */
export async function ask(
  { request, isConnected, tracer }: Asking,
  contract: Pick<Rpc, 'subject' | 'http' | 'repeatable'>,
  call: CallHeader,
  body: Uint8Array,
): Promise<Reply> {
  const { subject } = contract
  if (!isConnected()) throw new Problem('service_unavailable')
  const span = tracer?.begin(subject, { kind: 'client', parent: call.trace })
  const header = span ? { ...call, trace: span.traceparent } : call
  const repeat = isRepeatable(contract, call)
    ? (remainingMs: number) => writeCall({ ...header, remainingMs })
    : undefined
  const message = await request(subject, body, writeCall(header), call.remainingMs, repeat).catch((err: unknown) => {
    span?.end('unanswered')
    throw unanswered(subject, err)
  })
  const reply = read(message)
  span?.end(reply.failure ?? undefined)
  return reply
}

/** What we may ask again ourselves when nobody can tell whether it was done: reads, and what has an idempotency key. */
const isRepeatable = ({ http, repeatable }: Pick<Rpc, 'http' | 'repeatable'>, { idempotency }: CallHeader) =>
  repeatable ?? (http?.method === 'GET' || idempotency !== undefined)

function unanswered(subject: string, cause: unknown) {
  const why = isNobody(cause) ? 'nobody serves' : 'no answer from'
  return new Problem('service_unavailable', { cause: new Error(`${why} ${subject}`, { cause }) })
}

const isNobody = (err: unknown) => err instanceof NatsError && err.code === ErrorCode.NoResponders

/** Whether a question failed because no instance served its subject, so that surely nobody got it. */
export const wasNobodyThere = (err: unknown): boolean =>
  err instanceof Problem && err.cause instanceof Error && isNobody(err.cause.cause)

const noHeaders: Reply = {
  status: null,
  body: new Uint8Array(),
  replayed: false,
  failure: null,
  retryAfterSeconds: null,
  location: null,
}

function read({ headers, data }: Msg): Reply {
  if (!headers) return { ...noHeaders, body: data }
  const failure = headers.get('Nats-Service-Error')
  return {
    status: Number(headers.get('Nats-Service-Error-Code') || headers.get('Status')) || null,
    body: data,
    replayed: headers.has('Replayed'),
    failure: failure in failures ? (failure as FailureName) : null,
    retryAfterSeconds: Number(headers.get('Retry-After')) || null,
    location: headers.get('Location') || null,
  }
}

/** The caller of what nobody from outside asks for: start-up, timers, administration. */
export const systemCaller = (organizationId = '', requestId = 'system'): Caller => ({
  organizationId,
  keyId: '',
  requestId,
  deadline: performance.now() + 30_000,
  traceparent: '',
})

/** What a question carries, as its contract says. */
export interface CallInput<C extends Rpc> {
  params?: z.input<C['params']>
  query?: z.input<C['query']>
  body?: z.input<C['body']>
}

export type Answered<C extends Rpc> =
  C extends Rpc<z.ZodObject, z.ZodObject, z.ZodType, z.ZodType, infer L>
    ? L extends true
      ? Page<z.output<C['answer']>>
      : z.output<C['answer']>
    : never

/**
 * Calls an operation of another service and returns the data of its answer. A failure there is thrown as the same `Problem`. Waits for
 * `timeoutMs` at most, and never longer than the caller waits; then, and where `ask` says so, throws `service_unavailable`.
 */
export async function call<C extends Rpc>(
  app: Asking,
  contract: C,
  { params, query, body }: CallInput<C>,
  caller: Caller,
  { timeoutMs = 5_000 } = {},
): Promise<Answered<C>> {
  const remainingMs = Math.floor(Math.min(timeoutMs, caller.deadline - performance.now()))
  const header: CallHeader = {
    organization: caller.organizationId,
    key: caller.keyId,
    request: caller.requestId,
    remainingMs,
    trace: caller.traceparent,
    params: (params ?? {}) as Record<string, string>,
    query: query ?? {},
  }
  const bytes = body instanceof Uint8Array ? body : Buffer.from(body === undefined ? '' : JSON.stringify(body))
  const reply = await ask(app, contract, header, bytes)
  const answer = JSON.parse(Buffer.from(reply.body).toString()) as {
    data: unknown
    error?: { message: string; param?: string }
  }
  if (reply.failure || answer.error) throw problemOf(reply, answer.error)
  return (contract.list ? answer : answer.data) as Answered<C>
}

const problemOf = ({ failure, retryAfterSeconds }: Reply, error?: { message: string; param?: string }) =>
  new Problem(failure ?? 'internal_error', {
    message: error?.message,
    param: error?.param,
    retryAfterSeconds: retryAfterSeconds ?? undefined,
  })
