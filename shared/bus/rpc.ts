import { type MsgHdrs, headers, type ServiceMsg } from 'nats'
import { watchAbsence } from './absence.ts'
import { refuseTooLarge, shorterPage } from './answer-size.ts'
import { type CallHeader, readCall } from './call-header.ts'
import { type Caller, type Handlers, type Input, isRpc, type Rpc, type WholeAnswer } from '../api/contract.ts'
import { isDatabaseAway } from '../database/database.ts'
import { envelopeOf } from '../api/envelope.ts'
import { type Once, storedAnswer } from '../idempotency/idempotency.ts'
import { createInWork } from './in-work.ts'
import { isInbox } from './inbox.ts'
import { createListsInTurn, type ListsInTurn } from './lists-in-turn.ts'
import { inOurWords, inQueryWords } from '../api/fault-words.ts'
import { faultOf } from '../api/faults.ts'
import { fingerprintOf, parseJson, refuseBrokenText } from '../api/json.ts'
import { rounded } from '../service/log.ts'
import { tellInWork } from './lost-questions.ts'
import { durations } from '../metrics/registered.ts'
import { Problem, toProblem } from '../api/problem.ts'
import type { Service } from '../service/service.ts'
import { createReadInTurn, type ReadInTurn } from './read-in-turn.ts'
import { createSoon } from '../work/soon.ts'
import { type Span, traceIdOf } from '../service/tracing.ts'

export interface Serving {
  /** Takes no more questions, then waits for those in work. */
  stop: () => Promise<void>
}

/** What stored answers are read with; a service that takes no idempotency keys has neither. */
type Served = Service & Partial<Pick<Once, 'sql' | 'sealKeys'>>

type AnyHandler = (app: unknown, input: Input<Rpc>, caller: Caller) => Promise<object>

/**
 * Serves every operation (Rpc) of a contract module through the NATS services API: each request goes to one instance of the service.
 * `nats micro info` shows the ids of the keys of each instance, since all should have the same.
 */
export async function serve<App extends Served, M extends object>(
  app: App,
  contracts: M,
  handlers: Handlers<App, M>,
): Promise<Serving> {
  const service = await addService(app)
  const soon = createSoon()
  const served = timesOf(app)
  /** Where each answer goes: the same for two tries of one question. */
  const work = new Map<Promise<void>, string>()
  const inWork = createInWork()
  const readInTurn = createReadInTurn()
  const absence = watchAbsence(app.nc)
  const stopTelling = tellInWork(app.nc, app.name, () => new Set(work.values()))

  for (const [name, contract] of Object.entries(contracts)) {
    if (!isRpc(contract)) continue
    const handler = handlers[name as keyof typeof handlers] as unknown as AnyHandler
    const listInTurn: ListsInTurn = contract.list && contract.http ? createListsInTurn() : atOnce
    const turns = { readInTurn, listInTurn }
    const run = (message: ServiceMsg, call: CallHeader | undefined) =>
      answer(app, contract, handler, { message, call, lateMs: absence.lateMs(), ...turns }, soon).then((took) => {
        served.observe({ subject: contract.subject, outcome: took.outcome }, took.durationMs / 1_000)
      })
    service.addEndpoint(contract.subject.slice('rpc.'.length).replaceAll('.', '_'), {
      subject: contract.subject,
      handler: (err, message) => {
        if (err) return app.log.error({ err, subject: contract.subject }, 'rpc')
        // The stream can be told to send events to any address; one that was led here is no question.
        if (message.subject !== contract.subject || !isInbox(message.reply)) return
        const call = readable(message)
        const end = inWork.begin(call?.organization ?? '', message.data.length)
        if (!end) {
          served.observe({ subject: contract.subject, outcome: 'overloaded' }, 0)
          return respondProblem(message, new Problem('service_unavailable'), call?.request ?? '')
        }
        const job = run(message, call).finally(() => {
          end()
          work.delete(job)
        })
        work.set(job, message.reply ?? '')
      },
    })
  }
  // Without it, whoever asks at once may be told that nobody serves. If the bus is cut off now, it is told anew when it is back.
  await app.nc.flush().catch(() => {})
  return {
    async stop() {
      await service.stop()
      await Promise.all(work.keys())
      stopTelling()
      absence.stop()
      await app.nc.flush()
    },
  }
}

const addService = ({ nc, name, sealKeys }: Served) =>
  nc.services.add({
    name,
    version: '1.0.0',
    queue: name,
    metadata: { seal_keys: [...(sealKeys?.byId.keys() ?? [])].join(',') },
  })

const timesOf = ({ probes }: Service) =>
  durations(probes.metrics, {
    name: 'svc_rpc_served_seconds',
    help: "Questions that this process answered, by subject and outcome: ok, or the failure's name.",
    labelNames: ['subject', 'outcome'],
  })

const atOnce: ListsInTurn = (_caller, make) => make()

/** What a question carries; one that carries nothing fails later, where that is told. */
function readable({ headers: carrier }: ServiceMsg): CallHeader | undefined {
  try {
    return readCall(carrier)
  } catch {
    return undefined
  }
}

/** A question that was taken. */
interface Taken {
  message: ServiceMsg
  call: CallHeader | undefined
  lateMs: number
  readInTurn: ReadInTurn
  listInTurn: ListsInTurn
}

async function answer(
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
      return open(contract, carried, deadline, message.data)
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
function respondProblem(message: ServiceMsg, problem: Problem, requestId: string) {
  const carrier = headers()
  if (problem.retryAfterSeconds !== undefined) carrier.set('Retry-After', String(problem.retryAfterSeconds))
  const body = Buffer.from(JSON.stringify(problem.toEnvelope(requestId)))
  message.respondError(problem.status, problem.failure, body, { headers: carrier })
}

const tooLate = () => new Problem('service_unavailable', { message: 'The question came too late.' })

/** `input` is a Problem where the question does not fit its contract, or a guard has refused it. */
function open(
  contract: Rpc,
  call: CallHeader,
  deadline: number,
  data: Uint8Array,
): { input: Input<Rpc> | Problem; caller: Caller } {
  const raw = orProblem(() => rawBody(contract, data))
  const input = orProblem(() => inputOf(contract, call, raw))
  const caller: Caller = {
    organizationId: call.organization,
    keyId: call.key,
    requestId: call.request,
    deadline,
    traceparent: call.trace,
    idempotency: call.idempotency && {
      key: call.idempotency.key,
      fingerprint: fingerprintOf(call.idempotency.target, raw instanceof Problem ? undefined : raw),
    },
  }
  return { input, caller }
}

function orProblem<T>(read: () => T): T | Problem {
  try {
    return read()
  } catch (err) {
    if (err instanceof Problem) return err
    throw err
  }
}

function rawBody({ body: { type } }: Rpc, data: Uint8Array): unknown {
  if (type === 'undefined') return undefined
  if (type === 'custom') return data
  return data.length === 0 ? {} : parseJson(data)
}

function inputOf(contract: Rpc, call: CallHeader, raw: unknown): Input<Rpc> {
  const params = contract.params.safeParse(call.params)
  if (!params.success) throw faultOf(params.error, 'params')
  const query = contract.query.safeParse(call.query, inQueryWords)
  if (!query.success) throw faultOf(query.error, 'query')
  refuseBrokenText(call.query, '')
  if (raw instanceof Problem) throw raw
  const body = bodyOf(contract, raw)
  if (call.refusal) throw new Problem(call.refusal)
  return { params: params.data, query: query.data, body }
}

function bodyOf({ body: schema, variant }: Rpc, raw: unknown) {
  if (schema.type === 'undefined') return undefined
  const body = (variant && isObject(raw) ? variant(raw) : schema).safeParse(raw, inOurWords)
  if (!body.success) throw faultOf(body.error, 'body')
  return body.data
}

const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
