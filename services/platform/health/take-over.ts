import type { Sql, TransactionSql } from '@app/shared/database/database.ts'
import type { UpstreamNumber } from '../upstream/read-number.ts'
import { type DueAccount, nextPollAt } from './due-account.ts'
import { pollAfterMs, reportStands, type Standing, statusAfter } from './standing.ts'

/** What the platform said of a number; `gone`: it does not know it, or not our token. */
type Answer = UpstreamNumber | 'gone'

/** Of an account that is still ours to ask for. */
interface Known extends Standing, Pick<UpstreamNumber, 'name' | 'phoneNumber' | 'messagesPerSecond'> {
  upstreamStatus: string | null
  version: string
}

/**
 * Notes an answer that changes nothing, as nearly all do; false: it changes something. Without the organization's row, for
 * which the thousand numbers of one would wait in line, each with a session that others need.
 */
export async function confirmAccount(sql: Sql, account: DueAccount, answer: Answer): Promise<boolean> {
  const known = await knownOf(sql, account)
  if (known?.version !== account.version) return false
  const next = stateAfter(known, answer)
  const isSame =
    next.status === known.status &&
    next.upstreamStatus === known.upstreamStatus &&
    next.phoneNumber === known.phoneNumber &&
    next.name === known.name &&
    next.messagesPerSecond === known.messagesPerSecond
  return isSame && (await write(sql, account, next))
}

/** Takes over what an answer changes, with the organization's row locked. What changed after the question was asked is newer. */
export async function takeOver(tx: TransactionSql, account: DueAccount, answer: Answer): Promise<void> {
  const known = await knownOf(tx, account)
  if (known?.version === account.version) await write(tx, account, stateAfter(known, answer))
  else if (known) {
    await tx`
      update accounts set poll_held_until = '-infinity', poll_at = now()
      where organization_id = ${account.organizationId} and id = ${account.id}
    `
  }
}

async function knownOf(sql: Sql | TransactionSql, { organizationId, id, heldUntil }: DueAccount) {
  const [known] = await sql<Known[]>`
    select status, ${reportStands(sql)}, removed, name, phone_number, upstream_status, messages_per_second, version
    from accounts
    where organization_id = ${organizationId} and id = ${id} and attached and poll_held_until = ${heldUntil}::timestamptz
  `
  return known
}

function stateAfter(known: Known, answer: Answer) {
  const told = answer === 'gone' ? null : answer
  const status = told ? statusAfter(known, told.status) : 'disconnected'
  return {
    status,
    upstreamStatus: told?.status ?? known.upstreamStatus,
    phoneNumber: told?.phoneNumber ?? known.phoneNumber,
    name: told?.name ?? known.name,
    messagesPerSecond: told ? told.messagesPerSecond : known.messagesPerSecond,
    pollMs: pollAfterMs({ ...known, status }),
  }
}

async function write(sql: Sql | TransactionSql, account: DueAccount, next: ReturnType<typeof stateAfter>) {
  const { count } = await sql`
    update accounts set status = ${next.status}, upstream_status = ${next.upstreamStatus},
      phone_number = ${next.phoneNumber}, name = ${next.name}, messages_per_second = ${next.messagesPerSecond},
      poll_held_until = '-infinity', poll_failures = 0, polled_at = now(), poll_at = ${nextPollAt(sql, next.pollMs)}
    where organization_id = ${account.organizationId} and id = ${account.id} and attached
      and poll_held_until = ${account.heldUntil}::timestamptz and version = ${account.version}
  `
  return count > 0
}
