import type { Sql } from '@app/shared/database/database.ts'
import { notFound, Problem } from '@app/shared/api/problem.ts'
import { findLinkByToken, type Link } from '../setup-links/find-link.ts'

/** @throws `resource_not_found` for a token that no link has */
export async function findSetup(sql: Sql, token: string): Promise<Link> {
  const link = await findLinkByToken(sql, token)
  if (!link) throw notFound()
  return link
}

/** `refused`: the customer is suspended or archived, or the organization may not. */
export const stateOf = ({ refusal, status }: Link): Link['status'] | 'refused' =>
  refusal === null || refusal === 'setup_link_inactive' ? status : 'refused'

export function refuseUnusable({ refusal }: Link): void {
  if (refusal !== null) throw new Problem(refusal)
}
