import { headers, type MsgHdrs } from 'nats'
import type { FailureName } from '../api/problem.ts'

/** Everything beside the body that a question carries, in one header of JSON (JSON has no CR or LF, which a header refuses). */
export interface CallHeader {
  organization: string
  key: string
  request: string
  /** How long the caller still waits. A duration, since clocks differ. */
  remainingMs: number
  trace: string
  params: Record<string, string>
  query: Record<string, unknown>
  /** Idempotency key, and the method and URL that belong to its fingerprint. */
  idempotency?: { key: string; target: string } | undefined
  /** A guard has refused it: nothing is done, and only the answer that its key may have is given. */
  refusal?: FailureName | undefined
}

const name = 'Svc-Call'

export function writeCall(call: CallHeader): MsgHdrs {
  const carrier = headers()
  carrier.set(name, asciiJson(call))
  return carrier
}

export function readCall(carrier: MsgHdrs | undefined): CallHeader {
  const value = carrier?.get(name)
  if (!value) throw new Error(`a question without the header ${name}`)
  return JSON.parse(value) as CallHeader
}

/** JSON in ASCII: other clients of the bus read headers as Latin-1. */
const asciiJson = (value: unknown) =>
  JSON.stringify(value).replaceAll(
    /[\u007f-\uffff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
