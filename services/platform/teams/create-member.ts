import type { Handler } from '@app/shared/api/contract.ts'
import { type createMember as contract, memberChanged } from '@app/shared/contracts/platform.ts'
import { emit } from '@app/shared/events/events.ts'
import { newId } from '@app/shared/values/ids.ts'
import type { App } from '../app.ts'
import { violates } from '../constraints.ts'
import { unknownTeam } from './teams.ts'

export const createMember: Handler<App, typeof contract> = async ({ sql, relay }, { body }, caller) => {
  const { organization_id: organizationId, team_id, name, email } = body
  const id = newId('usr')
  await sql
    .begin(async (tx) => {
      await tx`
        insert into members (organization_id, id, team_id, name, email)
        values (${organizationId}, ${id}, ${team_id}, ${name}, ${email})
      `
      const { traceparent } = caller
      await emit(tx, memberChanged, { member: { id, team_id, name, email } }, { organizationId, traceparent })
    })
    .catch((err: unknown) => {
      throw violates(err, 'members_team') ? unknownTeam() : err
    })
  relay.wake()
  return { id, object: 'member', team_id, name, email }
}
