import { randomBytes } from 'node:crypto'
import { createEgress, type Egress, egressSettings } from '@app/shared/outside/egress.ts'
import type { Sql, TransactionSql } from '@app/shared/database/database.ts'
import { each } from '@app/shared/database/each.ts'
import { publicUrl, origins } from '@app/shared/service/environment.ts'
import { connectTo, upstreamSettings } from '@app/shared/outside/upstream.ts'
import { createStore, type Store, storeSettings } from '@app/shared/store/store.ts'
import { createLines, createTurns, type InLine, type Turns } from '@app/shared/work/turns.ts'
import type { Dispatcher } from 'undici'
import type { z } from 'zod'
import type { UpstreamMedia } from './hold-upload.ts'
import type { MediaStatus } from './with-media.ts'

/** The settings of media in the environment. */
export const mediaSettings = {
  ...storeSettings,
  /** The origin under which strangers find our files. */
  PUBLIC_URL: publicUrl,
  ...egressSettings,
  UPSTREAM_BASE_URL: upstreamSettings.UPSTREAM_BASE_URL,
  UPSTREAM_PROXY_URL: upstreamSettings.UPSTREAM_PROXY_URL,
  /** Where the platform's files may lie, apart from its API: origins that an account's bearer may go to, separated by commas. */
  UPSTREAM_MEDIA_ORIGINS: origins.default(['https://lookaside.fbsbx.com']),
}

/** The ways of files: where they are kept, how they come in and go out. */
export interface MediaWays {
  store: Store
  /** For links that users give. */
  egress: Egress
  /** For files from the platform and to it, which may be long and take their time: they hold up no sends. */
  agent: Dispatcher
  /** Origins that an account's bearer may go to. */
  bearerOrigins: ReadonlySet<string>
  publicUrl: string
  /** Links that are fetched at a time, of each organization too. */
  fetching: Turns
  /** Uploads to the platform that run in this process or wait for their turn, by number, file and token. */
  uploading: Map<string, Promise<UpstreamMedia>>
  /** Their turns, of each organization. */
  inLine: InLine
  /** Aborted at the stop: a long way is begun again by whoever is there next. */
  stopping: AbortController
  close: () => Promise<unknown>
}

/** One file at a time on a connection: 64 copies (copy-media.ts), and uploads. */
const maxConnections = 128
/** Uploads at a time of one organization: as many as one number's sends are worked on. */
const uploadsOfOne = 32
/** Half of the connections; the other half is for the first ones of as many more organizations. */
const uploadsInAll = maxConnections / 2

export function createMediaWays(env: z.output<z.ZodObject<typeof mediaSettings>>): MediaWays {
  const store = createStore(env)
  const egress = createEgress({ allowCidrs: env.EGRESS_ALLOW_CIDRS, proxyUrl: env.EGRESS_PROXY_URL })
  const agent = connectTo(env.UPSTREAM_PROXY_URL, { connections: maxConnections, keepAliveTimeout: 1_000 })
  return {
    store,
    egress,
    agent,
    bearerOrigins: new Set([new URL(env.UPSTREAM_BASE_URL).origin, ...env.UPSTREAM_MEDIA_ORIGINS]),
    publicUrl: env.PUBLIC_URL,
    fetching: createTurns({ ofOne: 32, inAll: 128, firsts: 128 }),
    uploading: new Map(),
    inLine: createLines(uploadsOfOne, uploadsInAll),
    stopping: new AbortController(),
    close: () => Promise.all([egress.close(), agent.destroy(), store.close()]),
  }
}

/** A file as it is kept. */
export interface MediaRow {
  organizationId: string
  id: string
  phoneNumberId: string
  source: 'upload' | 'link' | 'inbound'
  fileKey: string | null
  mimeType: string
  size: number | null
  sha256: string | null
  filename: string | null
}

/** How long a file can be sent; one of a link belongs to its own send, one of a customer to his message. */
const sendableDays = { upload: 30, link: 1, inbound: 0 } as const

/** Keeps rows of files; answers until when each may be used. */
export async function insertMedia(tx: TransactionSql, media: MediaRow[]): Promise<Map<string, Date>> {
  const rows = media.map((row) => ({
    organization_id: row.organizationId,
    id: row.id,
    phone_number_id: row.phoneNumberId,
    source: row.source,
    opaque: randomBytes(24).toString('base64url'),
    file_key: row.fileKey,
    mime_type: row.mimeType,
    size: row.size,
    sha256: row.sha256,
    filename: row.filename,
    sendable_days: sendableDays[row.source],
  }))
  const kept = await tx<{ id: string; expiresAt: Date }[]>`
    insert into media (organization_id, id, phone_number_id, source, opaque, file_key, mime_type, size, sha256, filename,
      expires_at, sweep_at)
    select organization_id, id, phone_number_id, source, opaque, file_key, mime_type, size, sha256, filename,
      now() + sendable_days * interval '1 day',
      -- A day late, since a send that found it in time may still be under way.
      case when source <> 'inbound' then now() + (sendable_days + 1) * interval '1 day' end
    from json_to_recordset(${JSON.stringify(rows)}::text::json) as m(organization_id text, id text, phone_number_id text,
      source text, opaque text, file_key text, mime_type text, size bigint, sha256 text, filename text, sendable_days int)
    returning id, expires_at
  `
  return new Map(kept.map(({ id, expiresAt }) => [id, expiresAt]))
}

/** Where strangers find a file. */
export const urlOf = ({ publicUrl }: Pick<MediaWays, 'publicUrl'>, opaque: string): string =>
  `${publicUrl}/media/${opaque}`

interface Ways {
  sql: Sql
  media: Pick<MediaWays, 'publicUrl'>
}

/** A file as a message shows it; one that is not there (yet) has no address. */
export type ShownFile = { status: 'ready'; url: string } | { status: Exclude<MediaStatus, 'ready'>; url: null }

/** How it stands with an organization's files, by their ids. */
export async function shownFiles(
  { sql, media }: Ways,
  organizationId: string,
  mediaIds: (string | null)[],
): Promise<Map<string | null, ShownFile>> {
  const ids = mediaIds.filter((id) => id !== null)
  if (ids.length === 0) return new Map()
  const rows = await sql<{ id: string; opaque: string; status: MediaStatus }[]>`
    select m.id, m.opaque, case when m.file_key is not null then 'ready' when (
        select true from media_copies where organization_id = ${organizationId} and media_id = m.id limit 1
      ) then 'pending' else 'failed' end as status
    from ${each(sql, ids)} i
    cross join lateral (
      select id, opaque, file_key from media where organization_id = ${organizationId} and id = i limit 1
    ) m
  `
  return new Map(
    rows.map(({ id, opaque, status }) => [
      id,
      status === 'ready' ? { status, url: urlOf(media, opaque) } : { status, url: null },
    ]),
  )
}
