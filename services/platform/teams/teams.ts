import type { Sql, TransactionSql } from '@app/shared/database.ts'
import { newId } from '@app/shared/ids.ts'
import { Problem } from '@app/shared/problem.ts'

/** Answers the new team's id. */
export async function insertTeam(sql: Sql | TransactionSql, organizationId: string, name: string) {
  const id = newId('team')
  await sql`insert into teams (organization_id, id, name) values (${organizationId}, ${id}, ${name})`
  return id
}

/** Another organization's team is as unknown as one that never was. */
export const unknownTeam = () => new Problem('resource_not_found', { param: 'team_id' })
