import { batched } from '@app/shared/work/batched.ts'
import type { Sql } from '@app/shared/database/database.ts'
import { mostRecent } from '@app/shared/work/most-recent.ts'
import type { OwnNumber } from '../senders/own-number.ts'
import type { Component } from './check-components.ts'
import { type Shape, shapeOf } from './parameters.ts'
import { createSpending, type Spending } from './spending.ts'
import type { TemplateStatus } from './statuses.ts'
import type { ParameterFormat } from './variables.ts'

export interface Place extends OwnNumber {
  name: string
  language: string
}

/** A number's account with the template that was asked for; null where the organization has no such number. */
export interface Standing {
  businessAccountId: string | null
  accountId: string
  sealedToken: string
  /** Null: not known here, or given up without knowing what became of it. */
  id: string | null
  status: TemplateStatus
  upstreamStatus: string
  category: 'MARKETING' | 'UTILITY' | 'AUTHENTICATION'
  /** When what stands in the row was heard: another time, another content. */
  knownAt: string
  /** It was heard so long ago that the platform may have changed the template since, with a callback that was lost. */
  isOld: boolean
}

/** What the sends of this process know of templates. */
export interface KnownTemplates {
  /** As it stands now: a pause is seen by the next send, in whichever process it was heard of. */
  find: (place: Place) => Promise<Standing>
  /** What it takes, which is read only once for each of its states. */
  shapeOf: (organizationId: string, id: string, knownAt: string) => Promise<Shape>
  /** How often the platform may be asked for names that are not known here. */
  spending: Spending
}

const keptShapes = 10_000
/** As long as the platform's shortest pause of a template. */
const oldHours = 3

export function createKnownTemplates(sql: Sql): KnownTemplates {
  const shapes = mostRecent<string, Shape>(keptShapes)
  return {
    find: batched((places: Place[]) => find(sql, places), { ownerOf: ({ organizationId }) => organizationId }),
    async shapeOf(organizationId, id, knownAt) {
      const key = `${id} ${knownAt}`
      const known = shapes.get(key)
      if (known) return known
      const [row] = await sql<{ components: Component[]; parameterFormat: ParameterFormat }[]>`
        select components, parameter_format from templates where organization_id = ${organizationId} and id = ${id}
      `
      const shape = shapeOf(row?.components ?? [], row?.parameterFormat ?? 'positional')
      shapes.set(key, shape)
      return shape
    },
    spending: createSpending(),
  }
}

async function find(sql: Sql, places: Place[]): Promise<Standing[]> {
  const rows = places.map(({ organizationId, phoneNumberId, name, language }, n) => ({
    n,
    org: organizationId,
    number: phoneNumberId,
    name,
    language,
  }))
  return sql<Standing[]>`
    select s.business_account_id, s.account_id, s.sealed_token, t.id, t.status, t.upstream_status, t.category, t.known_at, t.is_old
    from json_to_recordset(${JSON.stringify(rows)}::text::json) as u(n int, org text, number text, name text, language text)
    left join lateral (
      select business_account_id, account_id, sealed_token from senders
      where organization_id = u.org and phone_number_id = u.number limit 1
    ) s on true
    left join lateral (
      select id, status, upstream_status, category, known_at::text as known_at,
        known_at < now() - ${oldHours} * interval '1 hour' as is_old
      from templates
      where organization_id = u.org and business_account_id = s.business_account_id and name = u.name
        and language = u.language and (held_until is null or held_until > now()) limit 1
    ) t on true
    order by u.n
  `
}
