import type { ConnectedNumber } from './connect-numbers.ts'
import type { Project } from './project.ts'
import { countCharacters, dayMs, timeCharacters } from './ulid-sql.ts'

interface Span {
  count: number
  /** Evenly over so many days, the last of which ended so many days ago. */
  days: number
  endedDaysAgo?: number
}

/** Writes messages of a number straight into the table; one in a hundred failed. */
export async function fillMessages(
  project: Project,
  { phoneNumberId }: ConnectedNumber,
  { count, days, endedDaysAgo = 0 }: Span,
): Promise<void> {
  const { organization_id: organizationId } = project.stack()
  const sql = project.sql()
  const endsAt = Date.now() - endedDaysAgo * dayMs
  const stepMs = (days * dayMs) / count
  await sql`
    insert into messaging.messages (organization_id, phone_number_id, id, conversation_id, contact_id, direction, type,
      recipient, content, body, parties, status, rank, upstream_id, request_id, created_at)
    select ${organizationId}, ${phoneNumberId}, 'msg_' || ${sql.unsafe(timeCharacters('ms'))} || ${sql.unsafe(countCharacters('n'))},
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

/** An attempt for each outbound message that was written so. */
export async function fillAttempts(project: Project, { phoneNumberId }: ConnectedNumber): Promise<void> {
  await project.sql()`
    insert into messaging.send_attempts (organization_id, message_id, attempt, begun_at, ended_at, outcome, http_status)
    select organization_id, id, 1, created_at, created_at, 'sent', 200 from messaging.messages
    where organization_id = ${project.stack().organization_id} and phone_number_id = ${phoneNumberId}
      and direction = 'outbound' and request_id = 'req_fill'
    on conflict do nothing
  `
  await project.sql()`analyze messaging.send_attempts`
}
