import { z } from 'zod'
import type { Core } from '../app.ts'
import { beginCopies } from '../media/begin-copies.ts'
import { blockOf, contentsOf } from './contents.ts'
import { mediaOf } from './insert-imported.ts'

/** The word under which the platform tells of an old message before its file. */
export const placeholder = 'media_placeholder'

const Named = z.looseObject({ id: z.string().min(1), type: z.string() })

/** Old messages that were told without their file get their type and caption when they are told with it. False: one is not known yet. */
export async function fillPlaceholders(
  { sql }: Core,
  { organizationId, phoneNumberId }: { organizationId: string; phoneNumberId: string },
  parts: Record<string, unknown>[],
): Promise<boolean> {
  const rows = parts.flatMap((part) => {
    const named = Named.safeParse(part).data
    if (!named || named.type === placeholder) return []
    const media = mediaOf(part)
    return [
      {
        upstream_id: named.id,
        ...contentsOf(part),
        body: blockOf(part, named.type) ?? {},
        media_id: media?.id ?? null,
        media,
      },
    ]
  })
  if (rows.length === 0) return true
  return sql.begin(async (tx) => {
    const found = await tx<{ n: number; isFilled: boolean }[]>`
      with u as (
        select * from json_to_recordset(${JSON.stringify(rows.map((row, n) => ({ n, ...row })))}::text::json)
          as u(n int, upstream_id text, type text, content text, unsupported text, body jsonb, media_id text)
      ), found as (
        select m.id, m.is_waiting, u.n, u.type, u.content, u.unsupported, u.body, u.media_id from u cross join lateral (
          select id, unsupported is not distinct from ${placeholder} as is_waiting from messages
          where organization_id = ${organizationId} and upstream_id = u.upstream_id and phone_number_id = ${phoneNumberId}
          limit 1
        ) m
      ), locked as materialized (
        -- In the order in which receipts lock them.
        select id from messages
        where organization_id = ${organizationId} and phone_number_id = ${phoneNumberId}
          and id = any(array(select id from found where is_waiting)) order by id for no key update
      ), filled as (
        update messages m set type = f.type, content = f.content, unsupported = f.unsupported, body = f.body,
          media_id = f.media_id
        from found f join locked using (id)
        where m.organization_id = ${organizationId} and m.phone_number_id = ${phoneNumberId} and m.id = f.id
          and m.unsupported = ${placeholder}
        returning f.n
      )
      select n, n in (select n from filled) as is_filled from found
    `
    const files = found.flatMap(({ n, isFilled }) => (isFilled ? (rows[n]?.media ?? []) : []))
    await beginCopies(
      tx,
      files.map(({ id, file }) => ({ organizationId, phoneNumberId, mediaId: id, file, event: null })),
    )
    return found.length === rows.length
  })
}
