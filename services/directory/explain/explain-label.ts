import type { Handler } from '@app/shared/api/contract.ts'
import { notFound } from '@app/shared/api/problem.ts'
import { type explainLabel as contract, momentAt, standing } from '@app/shared/contracts/explain.ts'
import type { Sql } from '@app/shared/database/database.ts'
import type { App } from '../app.ts'

export const explainLabel: Handler<App, typeof contract> = async ({ sql }, { body: { id } }) => {
  const label = await find(sql, id)
  if (!label) throw notFound()
  const { organizationId, teamId, createdAt, updatedAt, deletedAt, contacts, conversations } = label
  const words = deletedAt
    ? 'is deleted, and nobody sees it; it is still to be taken off'
    : 'is there, and is attached to'
  const isNowhere = contacts + conversations === 0
  return {
    history: [
      momentAt(createdAt, 'was made', { organization_id: organizationId, team_id: teamId }),
      ...(updatedAt > createdAt && !deletedAt ? [momentAt(updatedAt, 'was changed last')] : []),
      ...(deletedAt ? [momentAt(deletedAt, 'was deleted')] : []),
      standing(
        isNowhere && deletedAt
          ? 'is deleted: its row goes next'
          : `${words} ${countOf(contacts, 'contact')} and ${countOf(conversations, 'conversation')}`,
        { contacts, conversations },
      ),
    ],
  }
}

interface Label {
  organizationId: string
  teamId: string
  createdAt: Date
  updatedAt: Date
  deletedAt: Date | null
  contacts: number
  conversations: number
}

/** Of a label on more it says that there are at least so many. */
const counted = 10_000

const countOf = (count: number, what: string) =>
  `${count < counted ? count : `at least ${count}`} ${what}${count === 1 ? '' : 's'}`

async function find(sql: Sql, id: string) {
  const [found] = await sql<Label[]>`
    select l.*, a.count as contacts, b.count as conversations from (select distinct organization_id from teams) o
    cross join lateral (
      select organization_id, id, team_id, created_at, updated_at, deleted_at from labels
      where organization_id = o.organization_id and id = ${id} limit 1
    ) l
    cross join lateral (
      select count(*)::int from (
        select from contact_labels where label_id = l.id and organization_id = l.organization_id limit ${counted}
      ) c
    ) a
    cross join lateral (
      select count(*)::int from (
        select from conversation_labels where label_id = l.id and organization_id = l.organization_id limit ${counted}
      ) c
    ) b
    limit 1
  `
  return found
}
