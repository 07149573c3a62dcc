import type { Handler } from '@app/shared/contract.ts'
import type { createMember as contract } from '@app/shared/contracts/platform.ts'
import { newId } from '@app/shared/ids.ts'
import type { App } from '../app.ts'
import { violates } from '../constraints.ts'
import { unknownTeam } from './teams.ts'

export const createMember: Handler<App, typeof contract> = async ({ sql }, { body }) => {
  const { organization_id: organizationId, team_id, name, email } = body
  const id = newId('usr')
  await sql`
    insert into members (organization_id, id, team_id, name, email)
    values (${organizationId}, ${id}, ${team_id}, ${name}, ${email})
  `.catch((err: unknown) => {
    throw violates(err, 'members_team') ? unknownTeam() : err
  })
  return { id, object: 'member', team_id, name, email }
}
