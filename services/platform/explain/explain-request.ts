import type { Handler } from '@app/shared/api/contract.ts'
import { type explainRequest as contract, momentAt } from '@app/shared/contracts/explain.ts'
import { notFound } from '@app/shared/api/problem.ts'
import { callOfRequest } from '../api-log/find-calls.ts'
import type { App } from '../app.ts'

export const explainRequest: Handler<App, typeof contract> = async ({ sql }, { body }) => {
  const call = await callOfRequest(sql, body.id)
  if (!call) throw notFound()
  const { at, organizationId, keyId, method, path, status, durationMs, ip, problem } = call
  return {
    organization_id: organizationId,
    at: at.toISOString(),
    history: [
      momentAt(at, `${method} ${path}: ${status}${problem === null ? '' : `, ${reasonOf(problem)}`}`, {
        organization_id: organizationId,
        key_id: keyId,
        duration_ms: durationMs,
        ip,
      }),
    ],
  }
}

/** Why there was nothing, as the gateway noted it: the two get the same answer. */
const absences: Record<string, string> = {
  'resource_not_found path': 'resource_not_found: no endpoint has this path and method',
  'resource_not_found id':
    'resource_not_found: the endpoint is there, and what the path names is not, or not this organization’s',
}

/** Else it has the field of the body whose id nothing has. */
const reasonOf = (problem: string) =>
  absences[problem] ??
  problem.replace(
    /^resource_not_found (\w+)$/,
    'resource_not_found: what $1 names is not there, or not this organization’s',
  )
