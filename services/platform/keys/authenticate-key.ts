import type { Handler } from '@app/shared/contract.ts'
import type { authenticateKey as contract } from '@app/shared/contracts/platform.ts'
import type { App } from '../app.ts'
import type { OrganizationRow } from '../organizations/organizations.ts'
import { tierOf } from '../organizations/rate-tiers.ts'

interface Row {
  id: string
  organizationId: string
  expiresAt: Date | null
  state: 'valid' | 'revoked' | 'expired'
  tier: OrganizationRow['tier']
  features: OrganizationRow['features']
}

/** One indexed query a request that is new to a gateway. Whether a key has expired, the database's clock says. */
export const authenticateKey: Handler<App, typeof contract> = async ({ sql, rateTiers }, { body }) => {
  const [row] = await sql<Row[]>`
    select k.id, k.organization_id, k.expires_at, o.tier, o.features,
      case when k.revoked_at is not null then 'revoked' when k.expires_at <= now() then 'expired' else 'valid' end as state
    from api_keys k join organizations o on o.id = k.organization_id
    where k.hash = ${body.key_hash}
  `
  if (!row) {
    return { state: 'unknown', key_id: null, organization_id: null, expires_at: null, tier: null, features: [] }
  }
  return {
    state: row.state,
    key_id: row.id,
    organization_id: row.organizationId,
    expires_at: row.expiresAt?.toISOString() ?? null,
    tier: tierOf(rateTiers, row.tier),
    features: row.features,
  }
}
