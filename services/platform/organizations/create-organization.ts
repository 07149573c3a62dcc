import type { Handler } from '@app/shared/api/contract.ts'
import { type createOrganization as contract, feature } from '@app/shared/contracts/platform.ts'
import { newId } from '@app/shared/values/ids.ts'
import type { App } from '../app.ts'
import { insertTeam } from '../teams/teams.ts'
import { organizationColumns, type OrganizationRow, toOrganization } from './organizations.ts'

export const createOrganization: Handler<App, typeof contract> = async ({ sql, relay }, { body }, caller) => {
  const organization = await sql.begin(async (tx) => {
    const { name, tier = 'pro', features = feature.options, subscription = 'active' } = body
    const [row] = await tx<[OrganizationRow]>`
      insert into organizations (id, name, tier, features, subscription, retention_days, settings)
      values (${newId('org')}, ${name}, ${tier}, ${[...new Set(features)]}::text[], ${subscription},
        ${body.retention_days ?? null}, ${JSON.stringify(body.settings ?? {})}::text::jsonb)
      returning ${tx(organizationColumns)}
    `
    await insertTeam(tx, row.id, 'Default', caller)
    return toOrganization(row)
  })
  relay.wake()
  return organization
}
