import type { Handler, Input } from '@app/shared/api/contract.ts'
import { type createMember as contract, memberChanged } from '@app/shared/contracts/platform.ts'
import { Problem } from '@app/shared/api/problem.ts'
import type { TransactionSql } from '@app/shared/database/database.ts'
import { emit } from '@app/shared/events/events.ts'
import { newId } from '@app/shared/values/ids.ts'
import type { App } from '../app.ts'
import { unknownTeam } from './teams.ts'

export const createMember: Handler<App, typeof contract> = async ({ sql, relay }, { body }, caller) => {
  const { organization_id: organizationId, team_id, name, email } = body
  const id = newId('usr')
  await sql.begin(async (tx) => {
    // One after the other, so that the second of two at once finds the first.
    const [team] = await tx`
      select id from teams where organization_id = ${organizationId} and id = ${team_id} for no key update
    `
    if (!team) throw unknownTeam()
    await refuseTwice(tx, body)
    await tx`
      insert into members (organization_id, id, team_id, name, email)
      values (${organizationId}, ${id}, ${team_id}, ${name}, ${email})
    `
    const { traceparent } = caller
    await emit(tx, memberChanged, { member: { id, team_id, name, email } }, { organizationId, traceparent })
  })
  relay.wake()
  return { id, object: 'member', team_id, name, email }
}

/** Who repeats a command whose answer was lost learns the id. A person may be in several teams. */
async function refuseTwice(tx: TransactionSql, body: Input<typeof contract>['body']) {
  const { organization_id: organizationId, team_id, email } = body
  const [member] = await tx<{ id: string }[]>`
    select id from members
    where organization_id = ${organizationId} and team_id = ${team_id} and lower(email) = lower(${email})
    limit 1
  `
  if (!member) return
  throw new Problem('name_taken', { param: 'email', message: `The team has a member with this e-mail: ${member.id}.` })
}
