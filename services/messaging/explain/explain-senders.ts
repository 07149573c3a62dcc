import type { Handler } from '@app/shared/api/contract.ts'
import { type explainSenders as contract, type Moment, momentAt, standing } from '@app/shared/contracts/explain.ts'
import type { Sql } from '@app/shared/database/database.ts'
import { restsUntil } from '@app/shared/mailbox/pace.ts'
import { timeOf } from '@app/shared/values/ids.ts'
import type { App } from '../app.ts'
import { quotaRest } from '../senders/quota.ts'
import { burstMs } from '../sends/pace.ts'
import { countedLanes, waitingSends } from './waiting-sends.ts'

/** A number that messaging does not know yet has nothing to tell. */
export const explainSenders: Handler<App, typeof contract> = async ({ sql }, { body }) => {
  const senders = await find(sql, body.phone_number_ids)
  return { history: senders.flatMap(momentsOf) }
}

interface Sender {
  organizationId: string
  phoneNumberId: string
  accountId: string
  version: string
  refusal: string | null
  attached: boolean
  settings: Record<string, unknown>
  retentionDays: number | null
  updatedAt: Date
  /** Messages that it may still send this month; null: as many as it wants. */
  rest: string | null
  perSecond: number | null
  /** When its pace lets the next one go; null: now. */
  nextAt: Date | null
  /** Open sends of its conversations, as far as they are counted. */
  waiting: number
  /** The first of them that was accepted. */
  oldest: string | null
}

const find = (sql: Sql, phoneNumberIds: string[]) => sql<Sender[]>`
  select s.organization_id, s.phone_number_id, s.account_id, s.version, s.refusal, s.attached, s.settings, s.retention_days,
    s.updated_at, q.rest, 1000 / p.interval_ms as per_second, w.waiting, w.oldest,
    ${restsUntil(sql, burstMs)} as next_at
  from senders s
  cross join lateral (${quotaRest(sql)}) q
  left join pace p on p.grp = s.phone_number_id
  cross join lateral (${waitingSends(sql)}) w
  where s.phone_number_id = any(${phoneNumberIds}::text[]) order by s.attached desc, s.organization_id
`

function momentsOf(sender: Sender): Moment[] {
  const { organizationId, accountId, version, settings, retentionDays, updatedAt, rest, perSecond, nextAt } = sender
  const name = { account_id: accountId, organization_id: organizationId }
  return [
    momentAt(updatedAt, 'messaging was told of it last', { ...name, version: Number(version) }),
    standing(`${wordsOf(sender)}; ${waitingOf(sender)}`, {
      ...name,
      phone_number_id: sender.phoneNumberId,
      settings: { ...settings, retention_days: retentionDays },
      ...(rest !== null && { messages_left_this_month: Math.max(0, Number(rest)) }),
      messages_per_second: perSecond,
      waiting: sender.waiting,
      ...(sender.oldest !== null && { oldest: sender.oldest, oldest_accepted_at: timeOf(sender.oldest) }),
      ...(nextAt && { next_at: nextAt }),
    }),
  ]
}

function wordsOf({ refusal, attached, rest }: Sender): string {
  if (refusal !== null) return `messaging refuses its sends: ${refusal}`
  if (!attached) return 'messaging refuses its sends: account_not_connected'
  return rest !== null && Number(rest) <= 0
    ? 'messaging refuses its sends until the month (UTC) ends: quota_used_up'
    : 'messaging takes its sends'
}

function waitingOf({ waiting, nextAt }: Sender): string {
  if (waiting === 0) return 'none waits'
  const count = waiting === 1 ? '1 waits' : waiting < countedLanes ? `${waiting} wait` : `at least ${waiting} wait`
  return nextAt ? `${count}, the next for the pace of the number, until ${nextAt.toISOString()}` : count
}
