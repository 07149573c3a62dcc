import type { Me } from '@app/shared/contracts/platform.ts'
import type { Sql } from '@app/shared/database/database.ts'
import type { z } from 'zod'
import type { OrganizationRow } from './organizations.ts'
import { type RateTiers, tierOf } from './rate-tiers.ts'

export interface MeRow {
  organizationId: string
  name: string
  tier: OrganizationRow['tier']
  keyId: string
  label: string
  last4: string
  teams: z.input<typeof Me>['teams']
}

/** What a key and its organization tell of themselves, of `api_keys k` and `organizations o`. */
export const meColumns = (sql: Sql) => sql`
  o.id as organization_id, o.name, o.tier, k.id as key_id, k.label, k.last4, (
    select coalesce(json_agg(json_build_object('id', t.id, 'object', 'team', 'name', t.name) order by t.id), '[]')
    from teams t where t.organization_id = o.id
  ) as teams
`

export function toMe(rateTiers: RateTiers, row: MeRow): z.input<typeof Me> {
  const { name: tier, ...rates } = tierOf(rateTiers, row.tier)
  return {
    organization: { id: row.organizationId, object: 'organization', name: row.name },
    api_key: { id: row.keyId, object: 'api_key', label: row.label, last4: row.last4 },
    rate_limits: { tier, ...rates },
    teams: row.teams,
  }
}
