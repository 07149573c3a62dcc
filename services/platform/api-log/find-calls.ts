import type { Sql } from '@app/shared/database/database.ts'
import { lastRowSince, rowOfRequest } from './earlier-rows.ts'

/** A call of the public API, as the log has it. */
export interface LoggedCall {
  at: Date
  organizationId: string | null
  /** Null: the call brought no valid key. */
  keyId: string | null
  requestId: string
  method: string
  path: string
  status: number
  durationMs: number
  ip: string
  problem: string | null
}

interface Batch {
  began: Date
  /** '' for none. */
  organizationIds: string[]
  keyIds: string[]
  ips: string[]
  calls: string
}

/** Newest first, as they were answered. */
const callsIn = (batch: Batch): LoggedCall[] =>
  batch.calls
    .split('\n')
    .map((line) => callOf(batch, line))
    .toReversed()

function callOf({ began, organizationIds, keyIds, ips }: Batch, line: string): LoggedCall {
  const [offset, took, caller, requestId = '', status, method = '', path = '', ...problem] = line.split(' ')
  const place = Number(caller) - 1
  return {
    at: new Date(began.getTime() + Number(offset)),
    organizationId: organizationIds[place] || null,
    keyId: keyIds[place] || null,
    requestId,
    method,
    path,
    status: Number(status),
    durationMs: Number(took) / 1_000,
    ip: ips[place] ?? '',
    problem: problem.join(' ') || null,
  }
}

export async function callOfRequest(sql: Sql, id: string): Promise<LoggedCall | undefined> {
  const batches = await sql<Batch[]>`
    select began, organization_ids, key_ids, ips, calls from api_calls
    where first_request <= ${id} and last_request >= ${id} and position(${id} in calls) > 0
  `
  const call = batches.flatMap(callsIn).find(({ requestId }) => requestId === id)
  return call ?? (await rowOfRequest(sql, id))
}

/** The last one with a key since then, by when it was recorded. */
export async function lastCallSince(sql: Sql, keyId: string, since: Date): Promise<LoggedCall | undefined> {
  const [batch] = await sql<Batch[]>`
    select began, organization_ids, key_ids, ips, calls from api_calls
    where recorded_at >= ${since} and ${keyId} = any(key_ids) order by recorded_at desc limit 1
  `
  return batch ? callsIn(batch).find((call) => call.keyId === keyId) : lastRowSince(sql, keyId, since)
}

export interface CallCounts {
  calls: number
  rateLimited: number
}

/** How many calls were made with a key since then, and how many of them were too many. */
export async function countCallsSince(sql: Sql, keyId: string, since: Date): Promise<CallCounts> {
  const [counts] = await sql<[CallCounts]>`
    select count(*)::int as calls, (count(*) filter (where split_part(line, ' ', 5) = '429'))::int as rate_limited
    from api_calls b, string_to_table(b.calls, chr(10)) as line
    where b.recorded_at >= ${since} and ${keyId} = any(b.key_ids)
      and b.key_ids[split_part(line, ' ', 3)::int] = ${keyId}
  `
  return counts
}
