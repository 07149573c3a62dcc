import type { TransactionSql } from '@app/shared/database/database.ts'
import { invalidField } from '@app/shared/api/problem.ts'

/** The team that is named, else the organization's only one. Throws `invalid_field_value` of `team_id`. */
export async function chooseTeam(tx: TransactionSql, organizationId: string, teamId: string | null = null) {
  const [team, another] = await tx<{ id: string }[]>`
    select id from teams
    where organization_id = ${organizationId} and (${teamId}::text is null or id = ${teamId})
    order by id limit 2
  `
  if (!team) throw invalidField('team_id', 'team_id is not a team of yours.')
  if (another) throw invalidField('team_id', 'team_id is required: the organization has several teams.')
  return team.id
}
