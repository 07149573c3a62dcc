import type { Handler } from '@app/shared/api/contract.ts'
import { notFound } from '@app/shared/api/problem.ts'
import { type explainOrganization as contract, momentAt, standing } from '@app/shared/contracts/explain.ts'
import { feature } from '@app/shared/contracts/platform.ts'
import type { Sql } from '@app/shared/database/database.ts'
import type { App } from '../app.ts'
import { organizationColumns, type OrganizationRow } from '../organizations/organizations.ts'
import { tierOf } from '../organizations/rate-tiers.ts'
import { settingsOf } from '../organizations/settings.ts'

export const explainOrganization: Handler<App, typeof contract> = async ({ sql, rateTiers }, { body: { id } }) => {
  const [organization] = await sql<OrganizationRow[]>`
    select ${sql(organizationColumns)} from organizations where id = ${id}
  `
  if (!organization) throw notFound()
  const { tier, features, subscription, retentionDays, settings, createdAt } = organization
  const { name, ...budgets } = tierOf(rateTiers, tier)
  const bars = barsOf(organization)
  const may = bars.length === 0 ? 'may do everything' : bars.join('; ')
  const { keys, customers, numbers } = await countsOf(sql, id)
  return {
    history: [
      momentAt(createdAt, 'was made'),
      standing(may, {
        tier: name,
        ...budgets,
        subscription,
        features,
        retention_days: retentionDays,
        settings: settingsOf(settings),
      }),
      standing(numbersOf(numbers), { numbers, keys, customers }),
    ],
  }
}

/** What its owner may not do, each with the code of its refusal. */
export function barsOf({ features, subscription }: Pick<OrganizationRow, 'features' | 'subscription'>): string[] {
  const missing = feature.options.filter((one) => !features.includes(one))
  return [
    ...(subscription === 'lapsed'
      ? ['its subscription has lapsed: sends, and changes of customers, are refused (subscription_inactive)']
      : []),
    ...(missing.length > 0
      ? [
          `it is not entitled to ${missing.map((one) => `\`${one}\``).join(', ')}: such changes are refused (feature_not_entitled), reads are not`,
        ]
      : []),
  ]
}

type Counts = Record<string, number>

async function countsOf(sql: Sql, id: string) {
  const [row] = await sql<[{ keys: Counts; customers: Counts; numbers: Counts }]>`
    select ${counts(
      sql,
      sql`select case when revoked_at is not null then 'revoked' when expires_at <= now() then 'expired' else 'good' end as state
        from api_keys where organization_id = ${id}`,
    )} as keys,
    ${counts(sql, sql`select status as state from customers where organization_id = ${id}`)} as customers,
    ${counts(sql, sql`select status as state from accounts where organization_id = ${id} and attached`)} as numbers
  `
  return row
}

/** So many of each state. */
const counts = (sql: Sql, states: ReturnType<Sql>) => sql`
  (select coalesce(json_object_agg(state, n), '{}') from (select state, count(*)::int as n from (${states}) s group by 1 order by 1) c)
`

function numbersOf(numbers: Counts): string {
  const all = Object.values(numbers).reduce((sum, count) => sum + count, 0)
  if (all === 0) return 'has no number'
  return `has ${all} ${all === 1 ? 'number' : 'numbers'}, of which ${numbers['connected'] ?? 0} connected`
}
