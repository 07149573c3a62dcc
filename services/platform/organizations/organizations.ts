import type { Organization } from '@app/shared/contracts/platform.ts'
import { Problem } from '@app/shared/api/problem.ts'
import type { z } from 'zod'
import { type Settings, settingsOf } from './settings.ts'

type Shown = z.output<typeof Organization>

export interface OrganizationRow {
  id: string
  name: string
  tier: Shown['tier']
  features: Shown['features']
  subscription: Shown['subscription']
  retentionDays: number | null
  settings: Partial<Settings>
  createdAt: Date
}

export const organizationColumns = [
  'id',
  'name',
  'tier',
  'features',
  'subscription',
  'retention_days',
  'settings',
  'created_at',
]

export const toOrganization = (row: OrganizationRow): Shown => ({
  id: row.id,
  object: 'organization',
  name: row.name,
  tier: row.tier,
  features: row.features,
  subscription: row.subscription,
  retention_days: row.retentionDays,
  settings: settingsOf(row.settings),
  created_at: row.createdAt.toISOString(),
})

export const unknownOrganization = () => new Problem('resource_not_found', { param: 'organization_id' })
