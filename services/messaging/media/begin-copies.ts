import type { TransactionSql } from '@app/shared/database/database.ts'
import type { Recorded } from '@app/shared/events/events.ts'
import { mediaKinds } from '@app/shared/files/media-kinds.ts'
import { z } from 'zod'
import { insertMedia } from './media.ts'

/** How long what is told of a message waits for its file. */
const eventWaitMs = 10_000

const Block = z.looseObject({
  id: z.string().min(1).max(255),
  mime_type: z.string().max(255).catch('application/octet-stream').default('application/octet-stream'),
  sha256: z.string().max(255).nullable().catch(null).default(null),
  filename: z.string().max(255).nullable().catch(null).default(null),
})

/** The file that a message of the platform's names: images, documents, video and audio have one. */
export type PlatformFile = z.output<typeof Block>

export function platformFileOf(part: Record<string, unknown>): PlatformFile | null {
  const kind = mediaKinds.find((one) => one === part['type'])
  return kind === undefined ? null : (Block.safeParse(part[kind]).data ?? null)
}

/** A file that is to be copied from the platform. */
export interface Copy {
  organizationId: string
  phoneNumberId: string
  /** The id that the message's row names. */
  mediaId: string
  file: PlatformFile
  /** What is told when the file is there, or after 10 s without it; `withMedia` puts the address in. Null: nothing. */
  event: Recorded | null
}

/** Begins copies, in the transaction that writes their messages. Wake the copier after the commit. */
export async function beginCopies(tx: TransactionSql, copies: Copy[]): Promise<void> {
  if (copies.length === 0) return
  await insertMedia(
    tx,
    copies.map(({ organizationId, phoneNumberId, mediaId, file }) => ({
      organizationId,
      id: mediaId,
      phoneNumberId,
      source: 'inbound',
      fileKey: null,
      mimeType: file.mime_type,
      size: null,
      sha256: null,
      filename: file.filename,
    })),
  )
  const rows = copies.map(({ organizationId, phoneNumberId, mediaId, file, event }) => ({
    organization_id: organizationId,
    phone_number_id: phoneNumberId,
    media_id: mediaId,
    upstream_media_id: file.id,
    sha256: file.sha256,
    event,
  }))
  await tx`
    with c as (
      select * from json_to_recordset(${JSON.stringify(rows)}::text::json) as c(organization_id text, phone_number_id text,
        media_id text, upstream_media_id text, sha256 text, event jsonb)
    ), kept as (
      insert into media_copies (organization_id, phone_number_id, media_id, lane, upstream_media_id, sha256, event, event_due_at)
      select organization_id, phone_number_id, media_id, organization_id, upstream_media_id, sha256, event,
        now() + ${eventWaitMs} * interval '1 ms'
      from c
    )
    insert into media_lanes as l (id, grp, due_at, arrivals)
    select organization_id, organization_id, now(), 1 from c group by 1 order by 1
    on conflict (id) do update set due_at = least(l.due_at, excluded.due_at), arrivals = l.arrivals + 1
  `
}
