import type { Handler } from '@app/shared/contract.ts'
import type { getMe as contract, Me } from '@app/shared/contracts/platform.ts'
import { notFound } from '@app/shared/problem.ts'
import type { z } from 'zod'
import type { App } from '../app.ts'
import type { OrganizationRow } from './organizations.ts'
import { tierOf } from './rate-tiers.ts'

interface Row {
  name: string
  tier: OrganizationRow['tier']
  label: string
  last4: string
  teams: z.input<typeof Me>['teams']
}

export const getMe: Handler<App, typeof contract> = async ({ sql, rateTiers }, _, { organizationId, keyId }) => {
  const [row] = await sql<Row[]>`
    select o.name, o.tier, k.label, k.last4, (
      select coalesce(json_agg(json_build_object('id', t.id, 'object', 'team', 'name', t.name) order by t.id), '[]')
      from teams t where t.organization_id = o.id
    ) as teams
    from organizations o join api_keys k on k.organization_id = o.id
    where o.id = ${organizationId} and k.id = ${keyId}
  `
  if (!row) throw notFound()
  const { name: tier, ...rates } = tierOf(rateTiers, row.tier)
  return {
    organization: { id: organizationId, object: 'organization', name: row.name },
    api_key: { id: keyId, object: 'api_key', label: row.label, last4: row.last4 },
    rate_limits: { tier, ...rates },
    teams: row.teams,
  }
}
