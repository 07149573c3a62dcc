import { readdirSync } from 'node:fs'
import type { Sql } from '@app/shared/database/database.ts'
import type { TestMessaging } from './app.ts'
import type { Tenant } from './steps.ts'

/** What is to be the same in the end, however often the way to it was broken off: no ids, no times. */
export async function endOf(sql: Sql, base: TestMessaging, { organizationId, phoneNumberId, customer }: Tenant) {
  const messages = await sql`
    select m.type, direction, status, rank, content, m.source, revoked_at is not null as revoked,
      jsonb_array_length(edits) as edits, upstream_id is not null as known, error ->> 'code' as error, f.file_key is not null as stored
    from messages m left join media f on f.organization_id = m.organization_id and f.id = m.media_id
    where m.organization_id = ${organizationId} order by direction, content, m.type
  `
  const keys =
    await sql`select key, status from idempotency.keys where organization_id = ${organizationId} order by key`
  const templates = await sql`
    select language, status, category, components, provider_template_id is not null as known, held_until from templates
    where organization_id = ${organizationId}
  `
  const attempts = await sql`
    select outcome from send_attempts where organization_id = ${organizationId} and outcome <> 'unreachable' order by 1
  `
  const files = await sql`
    select file_key is not null as stored from media where organization_id = ${organizationId} and sweep_at is null
  `
  const senders = await sql`select refusal, attached, version from senders where phone_number_id = ${phoneNumberId}`
  return {
    messages: [...messages],
    events: await eventsOf(sql, organizationId),
    calls: callsOf(base, customer),
    uploads: base.files.calls.filter(({ path }) => path.endsWith(`/${phoneNumberId}/media`)).length,
    keys: [...keys],
    templates: [...templates],
    attempts: [...attempts],
    senders: [...senders],
    files: [...files],
    lostFiles: await lostFiles(sql, base.mediaDir),
  }
}

async function eventsOf(sql: Sql, organizationId: string) {
  const rows = await sql<{ subject: string; payload: Uint8Array }[]>`
    select subject, payload from outbox where starts_with(id, ${organizationId})
  `
  return rows
    .map(({ subject, payload }) => {
      const words = Buffer.from(payload)
        .toString()
        .match(/"(status|media_status|type)":"\w+"/g)
      return [subject, ...(words ?? [])].join(' ')
    })
    .filter((line, n, all) => !mayComeAgain(line) || all.indexOf(line) === n)
    .toSorted()
}

/** With the callback of which it tells, when that is not answered: whoever hears it asks the platform how things stand. */
const mayComeAgain = (line: string) => line === 'event.messaging.account-reported'

/** What the platform was sent for the customer, in its order; a receipt may be told again. */
const callsOf = ({ calls }: TestMessaging, customer: string) =>
  calls.filter(({ body }) => String(body['to']).endsWith(customer)).map(({ text, body }) => text || body['type'])

/** Files of which nobody knows: they would stay for ever. */
async function lostFiles(sql: Sql, folder: string) {
  const known = await sql<{ fileKey: string }[]>`
    select file_key from unclaimed_files union all select file_key from media where file_key is not null
  `
  const names = new Set(known.map(({ fileKey }) => fileKey.split('/').at(-1)))
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  return files.map(({ name }) => name).filter((name) => !names.has(name))
}
