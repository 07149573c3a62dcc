import type { Handler } from '@app/shared/api/contract.ts'
import { notFound } from '@app/shared/api/problem.ts'
import { type explainMedia as contract, type Moment, momentAt, standing } from '@app/shared/contracts/explain.ts'
import type { Sql } from '@app/shared/database/database.ts'
import type { App } from '../app.ts'
import { fileOfMessage } from './file-of-message.ts'

/** What the file is called stays out of it, and its address, which is all that reading it takes. */
export const explainMedia: Handler<App, typeof contract> = async ({ sql }, { body: { id } }) => {
  const file = await find(sql, id)
  if (!file) throw notFound()
  const { organizationId, source } = file
  const [messages, uploads] = await Promise.all([messagesWith(sql, file), uploadsOf(sql, file)])
  const absent = source === 'inbound' ? (await fileOfMessage(sql, { organizationId, mediaId: id })).history : []
  return { history: [beginningOf(file), ...uploads.map(standingOfUpload), ...absent, standingOf(file, messages)] }
}

interface File {
  organizationId: string
  id: string
  phoneNumberId: string
  source: 'upload' | 'link' | 'inbound'
  isStored: boolean
  mimeType: string
  size: string | null
  sha256: string | null
  /** Until then it may be sent. */
  expiresAt: Date
  /** When it is looked at whether a message carries it; null: it goes with its messages. */
  sweepAt: Date | null
  createdAt: Date
}

/** Files are kept by organization; an operator has the id alone. */
async function find(sql: Sql, id: string) {
  const [found] = await sql<File[]>`
    select m.* from (select distinct organization_id from senders) o
    cross join lateral (
      select organization_id, id, phone_number_id, source, file_key is not null as is_stored, mime_type, size, sha256,
        expires_at, sweep_at, created_at
      from media where organization_id = o.organization_id and id = ${id} limit 1
    ) m limit 1
  `
  return found
}

const shownMessages = 20

/** The newest of those that carry it, and one more. */
async function messagesWith(sql: Sql, { organizationId, id }: File): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    select id from messages where organization_id = ${organizationId} and media_id = ${id}
    order by id desc limit ${shownMessages + 1}
  `
  return rows.map((row) => row.id)
}

interface Upload {
  phoneNumberId: string
  upstreamId: string | null
  failure: { details?: string } | null
  isHeld: boolean
  isOver: boolean
  expiresAt: Date | null
}

const uploadsOf = (sql: Sql, { organizationId, id }: File) => sql<Upload[]>`
  select u.phone_number_id, u.upstream_id, u.failure, u.held_until > now() as is_held,
    coalesce(u.expires_at <= now(), true) as is_over, u.expires_at
  from (select distinct phone_number_id from senders where organization_id = ${organizationId}) s
  join media_uploads u on u.organization_id = ${organizationId} and u.phone_number_id = s.phone_number_id
    and u.media_id = ${id}
  order by u.phone_number_id
`

const beginnings = {
  upload: 'was uploaded',
  link: 'was fetched from a link, for a send',
  inbound: 'came with a message of a customer',
}

function beginningOf({ organizationId, phoneNumberId, source, mimeType, size, sha256, createdAt }: File): Moment {
  return momentAt(createdAt, beginnings[source], {
    organization_id: organizationId,
    phone_number_id: phoneNumberId,
    mime_type: mimeType,
    size: size === null ? null : Number(size),
    sha256,
  })
}

function standingOfUpload({ phoneNumberId, upstreamId, failure, isHeld, isOver, expiresAt }: Upload): Moment {
  const name = { phone_number_id: phoneNumberId }
  if (isHeld) return standing('is being brought to the platform', name)
  if (upstreamId !== null) {
    const details = { ...name, upstream_id: upstreamId }
    return isOver
      ? standing('the platform had it, and has it no more: the next send brings it again', details)
      : standing(`the platform has it until ${expiresAt?.toISOString()}`, details)
  }
  const why = failure?.details === undefined ? {} : { last_error: failure.details }
  return standing('the platform did not get it at the last try: the next send tries again', { ...name, ...why })
}

function standingOf({ source, isStored, expiresAt, sweepAt }: File, messages: string[]): Moment {
  const shown = messages.slice(0, shownMessages)
  const many = messages.length > shownMessages ? `at least ${messages.length}` : String(messages.length)
  const stored = isStored ? 'is stored' : 'is not stored'
  const sendable =
    source === 'inbound'
      ? ''
      : expiresAt > new Date()
        ? `, and can be sent until ${expiresAt.toISOString()}`
        : ', and can be sent no more'
  const users =
    messages.length === 0
      ? 'no message carries it'
      : messages.length === 1
        ? '1 message carries it'
        : `${many} messages carry it`
  return standing(`${stored}${sendable}; ${users}, ${endOf(sweepAt, messages)}`, {
    messages: shown,
    expires_at: source === 'inbound' ? null : expiresAt,
    ...(messages.length === 0 && sweepAt && { deleted_at: sweepAt }),
  })
}

function endOf(sweepAt: Date | null, messages: string[]): string {
  if (messages.length > 0) return `and it goes with the last of these`
  return sweepAt
    ? `and it is deleted after ${sweepAt.toISOString()}`
    : 'and it is deleted with the message that it came with'
}
