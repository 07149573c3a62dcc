import type { Handler } from '@app/shared/api/contract.ts'
import type { createTeam as contract } from '@app/shared/contracts/platform.ts'
import { Problem } from '@app/shared/api/problem.ts'
import type { App } from '../app.ts'
import { violates } from '../constraints.ts'
import { unknownOrganization } from '../organizations/organizations.ts'
import { insertTeam } from './teams.ts'

export const createTeam: Handler<App, typeof contract> = async ({ sql, relay }, { body }, caller) => {
  const { organization_id: organizationId, name } = body
  const id = await sql
    .begin((tx) => insertTeam(tx, organizationId, name, caller))
    .catch((err: unknown) => {
      if (violates(err, 'teams_organization_id_fkey')) throw unknownOrganization()
      if (violates(err, 'teams_name')) throw new Problem('name_taken', { param: 'name' })
      throw err
    })
  relay.wake()
  return { id, object: 'team', name }
}
