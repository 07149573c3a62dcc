import type { CallHeader } from './call-header.ts'
import type { Caller, Input, Rpc } from '../api/contract.ts'
import { inOurWords, inQueryWords } from '../api/fault-words.ts'
import { faultOf } from '../api/faults.ts'
import { fingerprintOf, parseJson, refuseBrokenText } from '../api/json.ts'
import { Problem } from '../api/problem.ts'

/** `input` is a Problem where the question does not fit its contract, or a guard has refused it. */
export function openQuestion(
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
