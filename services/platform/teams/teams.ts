import type { Caller } from '@app/shared/api/contract.ts'
import { teamChanged } from '@app/shared/contracts/platform.ts'
import type { TransactionSql } from '@app/shared/database/database.ts'
import { emit } from '@app/shared/events/events.ts'
import { newId } from '@app/shared/values/ids.ts'
import { Problem } from '@app/shared/api/problem.ts'

/** Answers the new team's id. */
export async function insertTeam(tx: TransactionSql, organizationId: string, name: string, { traceparent }: Caller) {
  const id = newId('team')
  await tx`insert into teams (organization_id, id, name) values (${organizationId}, ${id}, ${name})`
  await emit(tx, teamChanged, { team: { id, name } }, { organizationId, traceparent })
  return id
}

/** Another organization's team is as unknown as one that never was. */
export const unknownTeam = () => new Problem('resource_not_found', { param: 'team_id' })
