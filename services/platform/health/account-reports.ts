import { systemCaller } from '@app/shared/bus/ask.ts'
import { consume, type Consuming } from '@app/shared/events/consume.ts'
import { accountReported } from '@app/shared/contracts/messaging.ts'
import type { TransactionSql } from '@app/shared/database/database.ts'
import type { Loop } from '@app/shared/work/loop.ts'
import { consumers } from '@app/shared/events/provision.ts'
import type { z } from 'zod'
import type { AccountState } from '../accounts/account-states.ts'
import { changeAccount } from '../accounts/change-account.ts'
import { tellStates } from '../accounts/tell-states.ts'
import type { App } from '../app.ts'
import { isInBusinessApp } from '../upstream/throughput.ts'
import { type Effect, effectOf } from './effect-of.ts'

type Report = z.output<typeof accountReported.data>

/** How long a report stands at least, whatever the platform shows of the number meanwhile. */
const standsMs = 60_000
/** Errors come with every send that fails: the budget of calls is not theirs to use up. Callbacks are rare. */
const quietAfterPollMs = 60_000

/** Settles what messaging hears of accounts, and has the platform asked how they are now. */
export const consumeAccountReports = (app: App, polling: Loop): Consuming =>
  consume(app, consumers.platformAccountReports.name, accountReported, async (tx, report, { organization }) => {
    const states = await settleReport(tx, organization, report, app.upstream.appId)
    return async () => {
      app.relay.wake()
      polling.wake()
      await tellStates(app, states, systemCaller(organization))
    }
  })

/**
 * Answers the states to tell after the commit: those that changed, since nobody waits to be told again. Of a number at its full
 * pace each send may fail: a report that asks for no more than what is due already waits for no lock.
 */
export async function settleReport(
  tx: TransactionSql,
  organizationId: string,
  report: Report,
  appId: string,
): Promise<AccountState[]> {
  const accounts = await tx<Reported[]>`
    select id, version, messages_per_second, poll_at <= ${soonestPoll(tx, report)} as is_due from accounts
    where organization_id = ${organizationId} and attached
      and case when ${report.phone_number_id}::text is null then business_account_id = ${report.business_account_id}
        else phone_number_id = ${report.phone_number_id} end
    order by id
  `
  const effect = effectOf(report, appId)
  const states: AccountState[] = []
  for (const { id, version, messagesPerSecond, isDue } of accounts) {
    const account = { organizationId, id }
    const isOfOthers =
      effect.kind === 'remove' &&
      effect.ofPhoneApp &&
      report.phone_number_id === null &&
      !isInBusinessApp(messagesPerSecond)
    if (isDue && (isOfOthers || effect.kind === 'poll')) continue
    const write = async () => {
      const isOver = isOfOthers || (await isBeforeReturn(tx, account, report.at))
      await apply(tx, account, { effect: isOver ? { kind: 'poll' } : effect, report })
    }
    const after = await changeAccount(tx, account, write, systemCaller(organizationId))
    states.push(...after.filter((state) => state.version > Number(version)))
  }
  return states
}

interface Reported {
  id: string
  version: string
  messagesPerSecond: number | null
  /** It is asked for as soon as the report would have it. */
  isDue: boolean
}

const soonestPoll = (tx: TransactionSql, { code }: Report) =>
  tx`greatest(now(), polled_at + ${code === null ? 0 : quietAfterPollMs} * interval '1 ms')`

interface Named {
  organizationId: string
  id: string
}

/** A callback may come late, or be worked through again; the platform is asked all the same. */
async function isBeforeReturn(tx: TransactionSql, { organizationId, id }: Named, at: string | undefined) {
  if (at === undefined) return false
  const found = await tx`
    select from accounts where organization_id = ${organizationId} and id = ${id} and returned_at > ${at}::timestamptz
  `
  return found.length > 0
}

async function apply(
  tx: TransactionSql,
  { organizationId, id }: Named,
  { effect, report }: { effect: Effect; report: Report },
) {
  const until = effect.kind === 'degrade' ? effect.until : null
  // What was said before a removal is over as well: else a return of before it, that comes late, would lift it.
  const isTie = effect.kind === 'remove' || effect.kind === 'restore'
  const stands = effect.kind === 'degrade' || effect.kind === 'disconnect'
  await tx`
    update accounts set poll_at = least(poll_at, ${soonestPoll(tx, report)}),
      status = case ${effect.kind}
        when 'degrade' then case when status = 'disconnected' then status else 'degraded' end
        when 'disconnect' then 'disconnected' when 'remove' then 'disconnected' else status end,
      removed = case ${effect.kind} when 'remove' then true when 'restore' then false else removed end,
      reported_until = case when ${stands} then greatest(reported_until, ${until}, now() + ${standsMs} * interval '1 ms')
        when ${effect.kind} = 'restore' then null else reported_until end,
      returned_at = case when ${isTie} then coalesce(${report.at ?? null}::timestamptz, returned_at) else returned_at end
    where organization_id = ${organizationId} and id = ${id}
  `
}
