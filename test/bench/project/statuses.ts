import { load, writeRequests } from '../load/wrk.ts'
import { drain } from './backlog.ts'
import type { ConnectedNumber } from './connect-numbers.ts'
import type { Fixture } from './fixture.ts'
import type { Project } from './project.ts'
import { sendRequests } from './send-requests.ts'
import { countCharacters, timeCharacters } from './ulid-sql.ts'

/** So many messages are told to be delivered, then each of them to be read. */
const messagesAtATime = 2_000

interface Sent {
  phoneNumberId: string
  upstreamId: string
  recipient: string
}

/**
 * So many bodies of callbacks that tell of messages which the platform has taken from us, `delivered`, then `read`. No two
 * tell the same, since what was told already costs less.
 */
export async function statusBodies(
  project: Project,
  { numbers, recipients }: Fixture,
  folder: string,
  count: number,
): Promise<string[]> {
  const { base_url: baseUrl, api_key: key } = project.stack()
  await load(writeRequests(folder, 'statuses', new URL(baseUrl).origin, sendRequests(recipients, key, false)), 8, 2)
  await drain(project)
  const messages = await copySent(project, Math.ceil(count / 2))
  const byId = new Map(numbers.map((number) => [number.phoneNumberId, number]))
  const timestamp = String(Math.floor(Date.now() / 1000))
  const parts = Array.from({ length: Math.ceil(messages.length / messagesAtATime) }, (_, n) =>
    messages.slice(n * messagesAtATime, (n + 1) * messagesAtATime),
  )
  return parts.flatMap((part) =>
    ['delivered', 'read'].flatMap((status) =>
      part.flatMap(({ phoneNumberId, upstreamId: id, recipient }) => {
        const number = byId.get(phoneNumberId)
        return number ? [bodyOf(number, { id, status, timestamp, recipient_id: recipient.slice(1) })] : []
      }),
    ),
  )
}

/** Makes messages as those are that were just sent, with ids of their own, straight in the table. */
async function copySent(project: Project, count: number) {
  const sql = project.sql()
  // Of this moment, so that those of an earlier call are others.
  const characters = sql.unsafe(`${timeCharacters(`${Date.now()}::bigint`)} || ${countCharacters('n')}`)
  const sent = await sql<Sent[]>`
    insert into messaging.messages
    select c.* from (
      select m, row_number() over () as n from messaging.messages m
      cross join generate_series(0, ${count}::int / greatest(1, (select count(*)::int from messaging.messages where status = 'sent')))
      where m.status = 'sent' limit ${count}
    ) s cross join lateral jsonb_populate_record(s.m, jsonb_build_object(
      'id', 'msg_' || ${characters}, 'upstream_id', 'wamid.' || ${characters}
    )) c
    returning phone_number_id as "phoneNumberId", upstream_id as "upstreamId", recipient
  `
  await sql`analyze messaging.messages`
  await sql`checkpoint`
  return sent
}

const bodyOf = (number: ConnectedNumber, status: object) =>
  JSON.stringify({
    object: 'whatsapp_business_account',
    entry: [
      {
        id: number.businessAccountId,
        changes: [
          {
            value: {
              messaging_product: 'whatsapp',
              metadata: {
                display_phone_number: number.displayPhoneNumber,
                phone_number_id: number.phoneNumberId,
              },
              statuses: [status],
            },
            field: 'messages',
          },
        ],
      },
    ],
  })
