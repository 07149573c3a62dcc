import type { Sql } from '@app/shared/database/database.ts'
import type { Partitions } from '@app/shared/database/partitions.ts'
import { firstIdAt } from '@app/shared/values/ids.ts'
import type { LoggedCall } from './find-calls.ts'
import { apiCalls } from './record-calls.ts'

// The log as it was until migration 021, a row for each call: nothing is written there any more, and it goes with its last day.

export const apiLog: Partitions = { ...apiCalls, table: 'api_log' }

export async function rowOfRequest(sql: Sql, id: string): Promise<LoggedCall | undefined> {
  const [call] = await sql<LoggedCall[]>`
    select at, organization_id, key_id, request_id, method, path, status, duration_ms, ip, problem
    from api_log where request_id = ${id} limit 1
  `
  return call
}

/** By the time in the ids of requests, whose index leaves out what is older. */
export async function lastRowSince(sql: Sql, keyId: string, since: Date): Promise<LoggedCall | undefined> {
  const [call] = await sql<LoggedCall[]>`
    select at, organization_id, key_id, request_id, method, path, status, duration_ms, ip, problem from api_log
    where at >= ${since} and request_id >= ${firstIdAt('req', since)} and key_id = ${keyId}
    order by at desc limit 1
  `
  return call
}
