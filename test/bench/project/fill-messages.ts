import type { ConnectedNumber } from './connect-numbers.ts'
import type { Project } from './project.ts'

/** Writes so many messages of a number straight into the table, evenly over the last days; one in a hundred failed. */
export async function fillMessages(
  project: Project,
  { phoneNumberId }: ConnectedNumber,
  count: number,
  days: number,
): Promise<void> {
  const { organization_id: organizationId } = project.stack()
  const sql = project.sql()
  const endsAt = Date.now()
  const stepMs = (days * 24 * 3600 * 1000) / count
  await sql`
    insert into messaging.messages (organization_id, phone_number_id, id, conversation_id, contact_id, direction, type,
      recipient, content, body, parties, status, rank, upstream_id, request_id, created_at)
    select ${organizationId}, ${phoneNumberId}, 'msg_' || ${sql.unsafe(timeCharacters('ms'))} || upper(lpad(to_hex(n), 16, '0')),
      'cnv_01JQ8Z6V0A' || upper(lpad(to_hex(n % 10000), 16, '0')), 'ctc_01JQ8Z6V0A' || upper(lpad(to_hex(n % 10000), 16, '0')),
      case n % 3 when 0 then 'inbound' else 'outbound' end, 'text', '+15550123456', 'Your order ' || n || ' is on its way.',
      '{"body":"Your order is on its way."}', '{}', case n % 100 when 0 then 'failed' else 'delivered' end,
      case n % 100 when 0 then 6 else 4 end, 'wamid.' || ${phoneNumberId} || '.' || n, 'req_fill',
      to_timestamp(ms / 1000.0)
    from (
      select n, (${endsAt}::float8 - n * ${stepMs}::float8)::bigint as ms from generate_series(1, ${count}::int) n
    ) times
  `
  await sql`analyze messaging.messages`
}

/** SQL for the first ten characters of a ULID: 48 bits of milliseconds, five a character. */
const timeCharacters = (ms: string) =>
  Array.from(
    { length: 10 },
    (_, n) => `substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', ((${ms} >> ${5 * (9 - n)}) & 31)::int + 1, 1)`,
  ).join(' || ')
