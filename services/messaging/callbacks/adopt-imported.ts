import type { TransactionSql } from '@app/shared/database/database.ts'
import { deleteMediaOf } from '../media/delete-media.ts'
import { placeholder } from './fill-placeholders.ts'

/** An inbound message, as its own callback tells it. */
interface Told {
  organization_id: string
  id: string
  upstream_id: string
  type: string
  content: string | null
  unsupported: string | null
  body: unknown
  media_id: string | null
}

interface Row {
  id: string
  knownId: string
  organizationId: string
  mediaId: string | null
}

/**
 * Inbound messages that the number's history brought before their own callback came: from now on they are as any other, unread and
 * to be told. Answers the ids that they have, by those that they were to have. Their own files take the place of the history's.
 */
export async function adoptImported(tx: TransactionSql, told: Told[]): Promise<Map<string, string>> {
  if (told.length === 0) return new Map()
  const rows = await tx<Row[]>`
    with u as (
      select * from json_to_recordset(${JSON.stringify(told)}::text::json) as u(organization_id text, id text,
        upstream_id text, type text, content text, unsupported text, body jsonb, media_id text)
    ), known as (
      select u.*, m.phone_number_id, m.known_id from u cross join lateral (
        select phone_number_id, id as known_id from messages
        where organization_id = u.organization_id and upstream_id = u.upstream_id and direction = 'inbound' and source = 'app'
        limit 1
      ) m
    ), found as (
      -- In the order in which receipts lock them.
      select k.*, m.known_media_id, m.is_waiting from (select * from known order by known_id) k cross join lateral (
        select media_id as known_media_id, unsupported is not distinct from ${placeholder} as is_waiting from messages
        where organization_id = k.organization_id and phone_number_id = k.phone_number_id and id = k.known_id and source = 'app'
        limit 1 for no key update
      ) m
    )
    update messages m set source = 'api', status = 'delivered', rank = 4, media_id = coalesce(f.media_id, m.media_id),
      type = case when f.is_waiting then f.type else m.type end,
      content = case when f.is_waiting then f.content else m.content end,
      unsupported = case when f.is_waiting then f.unsupported else m.unsupported end,
      body = case when f.is_waiting then f.body else m.body end
    from found f
    where m.organization_id = f.organization_id and m.phone_number_id = f.phone_number_id and m.id = f.known_id
    returning f.id, f.known_id, f.organization_id, f.known_media_id as media_id
  `
  await deleteMediaOf(tx, rows)
  return new Map(rows.map(({ id, knownId }) => [id, knownId]))
}
