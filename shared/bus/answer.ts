import { type MsgHdrs, headers, type ServiceMsg } from 'nats'
import { refuseTooLarge, shorterPage } from './answer-size.ts'
import { type CallHeader, readCall } from './call-header.ts'
import type { Caller, Input, Rpc, WholeAnswer } from '../api/contract.ts'
import { isDatabaseAway } from '../database/database.ts'
import { envelopeOf } from '../api/envelope.ts'
import { type Once, storedAnswer } from '../idempotency/idempotency.ts'
import type { ListsInTurn } from './lists-in-turn.ts'
import { openQuestion } from './open-question.ts'
import { rounded } from '../service/log.ts'
import { Problem, toProblem } from '../api/problem.ts'
import type { ReadInTurn } from './read-in-turn.ts'
import type { Service } from '../service/service.ts'
import { type Span, traceIdOf } from '../service/tracing.ts'

/** What stored answers are read with; a service that takes no idempotency keys has neither. */
export type Served = Service & Partial<Pick<Once, 'sql' | 'sealKeys'>>

export type AnyHandler = (app: unknown, input: Input<Rpc>, caller: Caller) => Promise<object>

/** A question that was taken. */
interface Taken {
  message: ServiceMsg
  call: CallHeader | undefined
  lateMs: number
  readInTurn: ReadInTurn
  listInTurn: ListsInTurn
}

/** Answers one question, whatever becomes of it: with what its handler makes, or with the problem. */
export async function answer(
  app: Served,
  contract: Rpc,
  handler: AnyHandler,
  { message, call: known, lateMs, readInTurn, listInTurn }: Taken,
  soon: (task: () => void) => void,
) {
  const startedAt = performance.now()
  let call = known
  let problem: Problem | undefined
  let span: Span | null | undefined
  try {
    call ??= readCall(message.headers)
    span = app.tracer?.begin(contract.subject, {
      kind: 'server',
      parent: call.trace,
      attributes: { organization: call.organization, request: call.request },
    })
    const carried = { ...call, trace: span?.traceparent ?? call.trace }
    const deadline = startedAt + call.remainingMs - lateMs
    // Bytes that are none of JSON cost nothing to read.
    const size = contract.body.type === 'custom' ? 0 : message.data.length
    const { input, caller } = await readInTurn(call.organization, size, () => {
      if (deadline <= performance.now()) throw tooLate()
      return openQuestion(contract, carried, deadline, message.data)
    })
    const isRefused = input instanceof Problem
    const { body, whole } = await (isRefused
      ? storedOrRefused(app, caller, input).then(asItIs)
      : listInTurn(caller, () => made(app, contract, handler, { input, caller })))
    const carrier = whole && wholeHeaders(whole)
    refuseTooLarge(app, contract, body)
    soon(() => void message.respond(body, carrier ? { headers: carrier } : undefined))
  } catch (err) {
    // A database that is away, restarting, full or too slow is nobody's mistake, and that passes.
    problem = isDatabaseAway(err) ? new Problem('service_unavailable', { cause: err }) : toProblem(err)
    respondProblem(message, problem, call?.request ?? '')
  }
  span?.end(problem?.failure)
  const durationMs = performance.now() - startedAt
  logLine(app, contract, call, durationMs, problem)
  return { outcome: problem?.failure ?? 'ok', durationMs }
}

interface Made {
  body: Uint8Array
  whole?: WholeAnswer
}

const asItIs = (whole: WholeAnswer): Made => ({ body: whole.body, whole })

/** What the handler answers; a page that would be too large is made again with fewer items. */
async function made(
  app: Served,
  contract: Rpc,
  handler: AnyHandler,
  { input, caller }: { input: Input<Rpc>; caller: Caller },
): Promise<Made> {
  const result = await handler(app, input, caller)
  if (isWhole(result)) return asItIs(result)
  const body = envelopeOf(contract, result, caller.requestId)
  const shorter = shorterPage(app, contract, input, { result, body })
  return shorter ? made(app, contract, handler, { input: shorter, caller }) : { body }
}

/**
 * A retry of an accepted request gets its stored answer, even if the request would be refused now. A different request under the key is
 * refused with `idempotency_key_reuse`, even if it would be refused for another reason too.
 */
async function storedOrRefused({ sql, sealKeys }: Served, caller: Caller, refused: Problem): Promise<WholeAnswer> {
  const stored = sql && sealKeys ? await storedAnswer(sql, sealKeys, caller) : null
  if (!stored) throw refused
  return stored
}

function logLine({ log }: Service, contract: Rpc, call: CallHeader | undefined, durationMs: number, problem?: Problem) {
  const level = levelOf(call, problem)
  if (!log.isLevelEnabled(level)) return
  const line = {
    subject: contract.subject,
    organization: call?.organization,
    request: call?.request,
    trace: traceIdOf(call?.trace),
    durationMs: rounded(durationMs),
    ...(problem && { problem: problem.failure, param: problem.param }),
    ...(problem && problem.status >= 500 && { err: problem.cause ?? problem }),
  }
  log[level](line, 'rpc')
}

function levelOf(call: CallHeader | undefined, problem?: Problem) {
  if (!problem) return 'debug'
  if (problem.status >= 500) return 'error'
  // Strangers, who ask in nobody's name, guess addresses of files: they would write the log as fast as they can ask.
  return problem.status === 404 && call?.organization === '' ? 'debug' : 'info'
}

const isWhole = (result: object): result is WholeAnswer => 'whole' in result

function wholeHeaders({ status, replayed, location }: WholeAnswer): MsgHdrs {
  const carrier = headers()
  carrier.set('Status', String(status))
  if (replayed) carrier.set('Replayed', '1')
  if (location !== undefined) carrier.set('Location', location)
  return carrier
}

/** Errors travel in the headers of the services API, and whole, as the client gets them, in the body. */
export function respondProblem(message: ServiceMsg, problem: Problem, requestId: string) {
  const carrier = headers()
  if (problem.retryAfterSeconds !== undefined) carrier.set('Retry-After', String(problem.retryAfterSeconds))
  const body = Buffer.from(JSON.stringify(problem.toEnvelope(requestId)))
  message.respondError(problem.status, problem.failure, body, { headers: carrier })
}

const tooLate = () => new Problem('service_unavailable', { message: 'The question came too late.' })
