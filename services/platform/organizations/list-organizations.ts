import type { Handler } from '@app/shared/api/contract.ts'
import type { listOrganizations as contract } from '@app/shared/contracts/platform.ts'
import type { App } from '../app.ts'
import { organizationColumns, type OrganizationRow, toOrganization } from './organizations.ts'

const pageLength = 1000

/** Newest first. */
export const listOrganizations: Handler<App, typeof contract> = async ({ sql }, { body: { search, after } }) => {
  const part = `%${search?.replaceAll(/[\\%_]/g, String.raw`\$&`)}%`
  const rows = await sql<OrganizationRow[]>`
    select ${sql(organizationColumns)} from organizations
    where true
      ${search === undefined ? sql`` : sql`and name ilike ${part}`}
      ${after === undefined ? sql`` : sql`and id < ${after}`}
    order by id desc limit ${pageLength + 1}
  `
  const shown = rows.slice(0, pageLength)
  const last = rows.length > pageLength ? shown.at(-1) : undefined
  return { organizations: shown.map(toOrganization), next_after: last?.id ?? null }
}
