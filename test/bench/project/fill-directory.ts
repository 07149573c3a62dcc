import { newId } from '@app/shared/values/ids.ts'
import type { Sql, TransactionSql } from 'postgres'
import type { ConnectedNumber } from './connect-numbers.ts'
import { numberRows } from './number-rows.ts'
import type { Project } from './project.ts'

const days = 30

/** What there is to look for. */
export interface FilledDirectory {
  /** On one contact in three, and on a hundred. */
  commonLabel: string
  rareLabel: string
  /** A contact and its conversation, as old as half of the others. */
  contactId: string
  phoneNumber: string
  conversationId: string
  lastMessageAt: Date
}

/**
 * Writes contacts of a number, each with a conversation, straight into the tables. Ten contacts are called Zoë Quill, half
 * of the others Ana Lima. One conversation in a hundred is pending, half are resolved, and one in ten has no message.
 */
export async function fillDirectory(
  project: Project,
  { phoneNumberId }: ConnectedNumber,
  count: number,
): Promise<FilledDirectory> {
  const { organization_id: organizationId } = project.stack()
  const sql = project.sql()
  const [commonLabel, rareLabel] = [newId('lbl'), newId('lbl')]
  const number = { organizationId, phoneNumberId, count }
  await sql.begin(async (tx) => {
    await numberRows(tx, count, days)
    // Three times as fast as with the index there.
    await withoutIndex(tx, 'contacts_search', () => fillContacts(tx, number))
    await fillConversations(tx, number)
    await fillLabels(tx, number, { commonLabel, rareLabel })
  })
  for (const table of tables) await sql.unsafe(`vacuum (analyze) directory.${table}`)
  return { commonLabel, rareLabel, ...(await middleOf(sql, number)) }
}

const tables = ['contacts', 'identities', 'conversations', 'labels', 'contact_labels']

interface Filling {
  organizationId: string
  phoneNumberId: string
  count: number
}

async function withoutIndex(tx: TransactionSql, name: string, work: () => Promise<unknown>) {
  const [index] = await tx<{ definition: string }[]>`
    select indexdef as definition from pg_indexes where schemaname = 'directory' and indexname = ${name}
  `
  if (!index) throw new Error(`there is no index ${name}`)
  await tx`set local search_path = directory`
  await tx`set local maintenance_work_mem = '256MB'`
  await tx`drop index ${tx(name)}`
  await work()
  await tx.unsafe(index.definition)
}

async function fillContacts(tx: TransactionSql, { organizationId, phoneNumberId, count }: Filling) {
  await tx`
    insert into directory.contacts (organization_id, id, phone_number_id, phone_number, name, created_at, updated_at)
    select ${organizationId}, 'ctc_' || characters, ${phoneNumberId}, '+1' || (2000000000 + n),
      case when n % ${count / 10}::int = 7 then 'Zoë Quill' when n % 2 = 0 then 'Ana Lima' end, at, at
    from filled
  `
  await tx`
    insert into directory.identities (organization_id, phone_number_id, kind, value, contact_id)
    select ${organizationId}, ${phoneNumberId}, 'phone', '+1' || (2000000000 + n), 'ctc_' || characters from filled
  `
}

/** Their messages and changes are in another order than they. */
const fillConversations = (tx: TransactionSql, { organizationId, phoneNumberId, count }: Filling) => tx`
  insert into directory.conversations (organization_id, id, phone_number_id, contact_id, status, last_message_at, created_at,
    updated_at)
  select ${organizationId}, 'cnv_' || characters, ${phoneNumberId}, 'ctc_' || characters,
    case when n % 100 = 7 then 'pending' when n % 2 = 0 then 'resolved' else 'open' end,
    case when n % 10 > 0 then now() - n::bigint * 7919 % ${count}::int * ${days / count}::float8 * interval '1 day' end, at,
    now() - n::bigint * 6007 % ${count}::int * ${days / count}::float8 * interval '1 day'
  from filled
`

type Labels = Pick<FilledDirectory, 'commonLabel' | 'rareLabel'>

async function fillLabels(
  tx: TransactionSql,
  { organizationId, phoneNumberId, count }: Filling,
  { commonLabel, rareLabel }: Labels,
) {
  await tx`
    insert into directory.labels (organization_id, id, team_id, name, created_at, updated_at)
    select ${organizationId}, id, a.team_id, id, now(), now()
    from unnest(${[commonLabel, rareLabel]}::text[]) id, directory.accounts a
    where a.organization_id = ${organizationId} and a.phone_number_id = ${phoneNumberId}
  `
  await tx`
    insert into directory.contact_labels (organization_id, contact_id, label_id, phone_number_id)
    select ${organizationId}, 'ctc_' || characters, ${commonLabel}, ${phoneNumberId} from filled where n % 3 = 0
    union all
    select ${organizationId}, 'ctc_' || characters, ${rareLabel}, ${phoneNumberId} from filled where n % ${count / 100}::int = 5
  `
}

async function middleOf(sql: Sql, { organizationId, phoneNumberId, count }: Filling) {
  const [row] = await sql<Pick<FilledDirectory, 'contactId' | 'phoneNumber' | 'conversationId' | 'lastMessageAt'>[]>`
    select c.id as "contactId", c.phone_number as "phoneNumber", v.id as "conversationId", v.last_message_at as "lastMessageAt"
    from directory.contacts c join directory.conversations v on v.organization_id = c.organization_id and v.contact_id = c.id
    where c.organization_id = ${organizationId} and c.phone_number_id = ${phoneNumberId} and v.last_message_at is not null
    order by c.created_at, c.id offset ${Math.floor(count / 2)}::int limit 1
  `
  if (!row) throw new Error('nothing in the middle')
  return row
}
