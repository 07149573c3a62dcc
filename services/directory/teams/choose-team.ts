import { call } from '@app/shared/bus/ask.ts'
import type { Caller } from '@app/shared/api/contract.ts'
import { listTeams } from '@app/shared/contracts/platform.ts'
import { invalidField } from '@app/shared/api/problem.ts'
import type { App } from '../app.ts'

/**
 * The team that something is made for: the one given, if it is the organization's, or its only one. Platform is asked when
 * what directory was told of does not settle it: a team that was created a moment ago can be used at once.
 */
export async function chooseTeam(app: App, given: string | undefined, caller: Caller): Promise<string> {
  const known = await knownTeams(app, caller)
  if (given !== undefined && known.includes(given)) return given
  const isSettled = given === undefined && known.length > 1
  const ids = isSettled ? known : (await call(app, listTeams, {}, caller)).teams.map(({ id }) => id)
  const [only] = ids
  if (given === undefined && only !== undefined && ids.length === 1) return only
  if (given !== undefined && ids.includes(given)) return given
  if (given !== undefined) throw invalidField('team_id', 'team_id: is no team of the organization.')
  throw invalidField('team_id', 'team_id: is required of an organization with several teams.')
}

async function knownTeams({ sql }: App, { organizationId }: Caller) {
  const rows = await sql<{ id: string }[]>`select id from teams where organization_id = ${organizationId} limit 1000`
  return rows.map(({ id }) => id)
}
