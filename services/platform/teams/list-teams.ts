import type { Handler } from '@app/shared/api/contract.ts'
import type { listTeams as contract } from '@app/shared/contracts/platform.ts'
import type { App } from '../app.ts'

export const listTeams: Handler<App, typeof contract> = async ({ sql }, _input, { organizationId }) => {
  const teams = await sql<{ id: string; name: string }[]>`
    select id, name from teams where organization_id = ${organizationId} order by id
  `
  return { teams }
}
