import { randomUUID } from 'node:crypto'
import type { Handler } from '@app/shared/api/contract.ts'
import type {
  recordApiCalls as callsContract,
  recordCallBatch as batchContract,
} from '@app/shared/contracts/platform.ts'
import type { App } from '../app.ts'
import { type Calls, keepCalls } from './record-calls.ts'

/** A call with its values as text, null or '' for none. */
interface Call {
  at: string
  organization_id: string | null
  key_id: string | null
  request_id: string
  method: string
  path: string
  status: string | number
  duration_ms: string | number
  ip: string
  problem?: string
}

/** What gateways of the version before send while they are replaced, kept as what today's send. */
export const recordCallBatch: Handler<App, typeof batchContract> = async ({ sql }, { body }) => {
  const { batch, ...columns } = body
  const values = Object.entries(columns).map(([name, lines]) => [name, lines.split('\n')] as const)
  const calls = body.request_id
    .split('\n')
    .map((_id, row) => Object.fromEntries(values.map(([name, lines]) => [name, lines[row] ?? ''])) as unknown as Call)
  const isRecorded = await keepCalls(sql, batchOf(batch, calls))
  return { recorded: isRecorded ? calls.length : 0 }
}

/** And those before them, whose batches have no name: one that comes twice is recorded twice. */
export const recordApiCalls: Handler<App, typeof callsContract> = async ({ sql }, { body }) => {
  const isRecorded = body.calls.length > 0 && (await keepCalls(sql, batchOf(randomUUID(), body.calls)))
  return { recorded: isRecorded ? body.calls.length : 0 }
}

function batchOf(batch: string, calls: Call[]): Calls {
  const ids = calls.map((one) => one.request_id).toSorted()
  const began = Date.parse(calls[0]?.at ?? '')
  const lines = calls.map((call, n) => {
    const { at, duration_ms: tookMs, request_id: id, status, method, path, problem = '' } = call
    return [Date.parse(at) - began, Math.round(Number(tookMs) * 1_000), n + 1, id, status, method, path, problem].join(
      ' ',
    )
  })
  return {
    batch,
    first_request: ids[0] ?? '',
    last_request: ids.at(-1) ?? '',
    began: new Date(began).toISOString(),
    callers: calls.map(({ organization_id, key_id, ip }) => ({
      organization_id: organization_id || null,
      key_id: key_id || null,
      ip,
    })),
    calls: lines.join('\n'),
  }
}
