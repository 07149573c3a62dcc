import type { Handler } from '@app/shared/api/contract.ts'
import type { authenticateKey as contract } from '@app/shared/contracts/platform.ts'
import type { App } from '../app.ts'
import { meColumns, type MeRow, toMe } from '../organizations/me.ts'
import type { OrganizationRow } from '../organizations/organizations.ts'
import { tierOf } from '../organizations/rate-tiers.ts'

interface Row extends MeRow {
  expiresAt: Date | null
  state: 'valid' | 'revoked' | 'expired'
  features: OrganizationRow['features']
}

const unknown = {
  state: 'unknown',
  key_id: null,
  organization_id: null,
  expires_at: null,
  tier: null,
  features: [],
  me: null,
} as const

/** One indexed query a request that is new to a gateway. Whether a key has expired, the database's clock says. */
export const authenticateKey: Handler<App, typeof contract> = async ({ sql, rateTiers }, { body }) => {
  const [row] = await sql<Row[]>`
    select ${meColumns(sql)}, k.expires_at, o.features,
      case when k.revoked_at is not null then 'revoked' when k.expires_at <= now() then 'expired' else 'valid' end as state
    from api_keys k join organizations o on o.id = k.organization_id
    where k.hash = ${body.key_hash}
  `
  if (!row) return { ...unknown, features: [] }
  return {
    state: row.state,
    key_id: row.keyId,
    organization_id: row.organizationId,
    expires_at: row.expiresAt?.toISOString() ?? null,
    tier: tierOf(rateTiers, row.tier),
    features: row.features,
    me: toMe(rateTiers, row),
  }
}
