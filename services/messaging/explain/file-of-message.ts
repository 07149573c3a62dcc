import { type Moment, standing } from '@app/shared/contracts/explain.ts'
import type { Sql } from '@app/shared/database/database.ts'

const nothing = { history: [], isWaiting: false }

interface File {
  fileKey: string | null
  attempts: number | null
  dueAt: Date | null
  /** Of a message that is still to be told: when that is done, with the file or without. */
  toldAt: Date | null
  givenUpAt: Date | null
  isConnected: boolean
}

/** How it stands with the file that a customer sent; nothing of one that is here. `isWaiting`: its message is told with it, or later. */
export async function fileOfMessage(
  sql: Sql,
  { organizationId, mediaId }: { organizationId: string; mediaId: string | null },
): Promise<{ history: Moment[]; isWaiting: boolean }> {
  if (mediaId === null) return nothing
  const [file] = await sql<File[]>`
    select f.file_key, c.attempts, c.due_at, case when c.event is not null then c.event_due_at end as told_at,
      c.created_at + interval '7 days' as given_up_at,
      exists (
        select from senders s where s.organization_id = f.organization_id and s.phone_number_id = f.phone_number_id and s.attached
      ) as is_connected
    from media f left join media_copies c on c.organization_id = f.organization_id and c.media_id = f.id
    where f.organization_id = ${organizationId} and f.id = ${mediaId} and f.source = 'inbound'
  `
  if (!file || file.fileKey !== null) return nothing
  const { attempts, dueAt, toldAt, givenUpAt, isConnected } = file
  if (attempts === null) {
    const history = [standing('its file was given up: the platform did not have it, or no longer')]
    return { history, isWaiting: false }
  }
  const what = isConnected
    ? `its file is still to be copied from the platform: try ${attempts + 1}`
    : 'its file waits until its number is connected again'
  const details = { media_id: mediaId, next_at: dueAt, given_up_at: givenUpAt }
  const told = toldAt ? { told_without_it_at: toldAt } : {}
  return { history: [standing(what, { ...details, ...told })], isWaiting: toldAt !== null }
}
