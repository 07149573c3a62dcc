import { setTimeout as sleep } from 'node:timers/promises'
import type { Handler } from '@app/shared/api/contract.ts'
import type { putSender as contract } from '@app/shared/contracts/messaging.ts'
import type { AccountState } from '@app/shared/contracts/platform.ts'
import type { Fragment, Sql, TransactionSql } from '@app/shared/database/database.ts'
import type { KeyRing } from '@app/shared/service/environment.ts'
import { boundToAccount } from '@app/shared/secrets/account-token.ts'
import { renewed } from '@app/shared/secrets/seal.ts'
import { sealedColumn } from '@app/shared/secrets/sealed-columns.ts'
import type { z } from 'zod'
import type { App } from '../app.ts'
import { leaveToOwner } from '../callbacks/leave-to-owner.ts'
import { wakeKept } from '../callbacks/wake-kept.ts'
import { wakeCopies } from '../media/copy-media.ts'
import { endQueued, endRest, groupsOf } from './end-queued.ts'
import type { OwnNumber } from './own-number.ts'
import { takeOverLanes, takeOverRest } from './take-over-lanes.ts'

type State = z.output<typeof AccountState>

/** Messages a second that the platform takes from a number unless it says otherwise (its throughput documentation). */
const usualPerSecond = 80

/** Answers when the sends of a number that is refused now are at the platform or will not get there. */
export const putSender: Handler<App, typeof contract> = async (app, { body }) => {
  const moved = await app.sql.begin((tx) => storeSender(tx, app.sealKeys, body))
  void finishSender(app, body, moved)
  if (body.refusal !== null) await waitForBegun(app, body)
  return { version: body.version }
}

/** Does what `storeSender` has left to do after its commit. */
export async function finishSender(app: App, state: State, moved: number) {
  app.dispatcher.wake()
  app.callbacks.wake()
  await takeOverRest(app, numberOf(state), moved)
  if (state.attached) await wakeCopies(app, numberOf(state))
  app.copier.wake()
  if (state.refusal === null) return
  await endRest(app, numberOf(state))
  app.dispatcher.wake()
}

/** After this time a call that has begun has written its bytes, however slow its answer is. */
const maxWaitMs = 3_000
const lookEveryMs = 20

/** Waits for the calls that began before the refusal was committed. */
async function waitForBegun({ sql, log }: App, state: State) {
  const number = numberOf(state)
  const until = performance.now() + maxWaitMs
  while (performance.now() < until) {
    if (!(await isBegun(sql, number))) return
    await sleep(lookEveryMs)
  }
  log.warn({ number: number.phoneNumberId }, 'sends that began before a refusal have no answer yet')
}

/** A held lane has a `due_at`. Without that condition Postgres would read the lanes of all numbers, and the sends of all tenants. */
export async function isBegun(sql: Sql, number: OwnNumber): Promise<boolean> {
  const [row] = await sql<{ begun: boolean }[]>`
    select exists (
      select from send_lanes l
      where grp = any(${groupsOf(number)}::text[]) and due_at is not null and held_until > now() and (
        select true from sends
        where lane = l.id and begun_at is not null and organization_id = ${number.organizationId} limit 1
      )
    ) as begun
  `
  return row?.begun === true
}

/** The tokens of numbers, as platform has sealed them for their accounts. */
export const sealedTokens = sealedColumn('sealed_token', {
  table: 'senders',
  rowKey: ['organization_id', 'phone_number_id'],
  boundBy: 'account_id',
  boundTo: ([accountId = '']) => boundToAccount(accountId),
})

/** Whether another organization has connected the number since: then the news that this one lost it is still on its way here. */
async function isLost(tx: TransactionSql, state: State): Promise<boolean> {
  const later = await tx`
    select from senders
    where phone_number_id = ${state.phone_number_id} and organization_id <> ${state.organization_id} and attached
      and attached_at > ${state.attached_at ?? null}::text::timestamptz
  `
  return state.attached && later.length > 0
}

const lost = (state: State): State => ({ ...state, attached: false, refusal: state.refusal ?? 'account_not_connected' })

/**
 * Takes over an account's state; an older version than the stored one changes nothing. Answers how many lanes of the number
 * have moved, as `takeOverLanes` does.
 */
export async function storeSender(tx: TransactionSql, sealKeys: KeyRing, told: State): Promise<number> {
  const { organization_id: organizationId, phone_number_id: phoneNumberId } = told
  // The rpc and the event of one change come at once, and a number may move between organizations meanwhile.
  await tx`select pg_advisory_xact_lock(hashtextextended(${`sender ${phoneNumberId}`}, 0))`
  const [newer] = await tx`
    select version from senders
    where organization_id = ${organizationId} and phone_number_id = ${phoneNumberId} and account_id = ${told.account_id}
      and version >= ${told.version}
  `
  if (newer) return 0
  const account = (await isLost(tx, told)) ? lost(told) : told
  const comes = account.attached && !(await isAttached(tx, account))
  if (account.attached) {
    // The number has moved here, and is nowhere else any more: nothing that waits there may use its token.
    await tx`
      update senders set attached = false, refusal = coalesce(refusal, 'account_not_connected')
      where phone_number_id = ${phoneNumberId} and organization_id <> ${organizationId} and attached
    `
    await leaveToOwner(tx, { organizationId, phoneNumberId })
  }
  // Also one that comes back from another.
  const hasComeFrom = (since: Fragment) => tx`exists (
    select from senders
    where phone_number_id = ${phoneNumberId} and organization_id <> ${organizationId} and owned_since >= ${since}
  )`
  // A state that was on its way while the keys were rotated must not bring an old key back.
  const sealedToken = renewed(sealKeys, account.sealed_token, boundToAccount(account.account_id))
  await tx`
    insert into senders as s (organization_id, phone_number_id, account_id, business_account_id, version, phone_number, name,
      team_id, customer_id, refusal, attached, attached_at, sealed_token, settings, retention_days, owned_since)
    values (${organizationId}, ${phoneNumberId}, ${account.account_id}, ${account.business_account_id}, ${account.version},
      ${account.phone_number}, ${account.name}, ${account.team_id}, ${account.customer?.id ?? null}, ${account.refusal},
      ${account.attached}, ${account.attached_at ?? null}, ${sealedToken}, ${JSON.stringify(account.settings)}::text::jsonb, ${account.retention_days ?? null},
      case when ${hasComeFrom(tx`'epoch'`)} then now() else 'epoch' end)
    on conflict (organization_id, phone_number_id) do update set
      account_id = excluded.account_id, business_account_id = excluded.business_account_id, version = excluded.version,
      phone_number = excluded.phone_number, name = excluded.name, team_id = excluded.team_id,
      customer_id = excluded.customer_id, refusal = excluded.refusal, attached = excluded.attached,
      attached_at = excluded.attached_at, sealed_token = excluded.sealed_token, settings = excluded.settings,
      retention_days = excluded.retention_days, updated_at = now(),
      owned_since = case when not s.attached and excluded.attached and ${hasComeFrom(tx`s.owned_since`)} then now()
        else s.owned_since end
  `
  await putPace(tx, account)
  if (account.refusal !== null) await endQueued(tx, numberOf(account))
  if (!comes) return 0
  await wakeKept(tx, organizationId)
  // After the number's pace, as where sends are accepted.
  return takeOverLanes(tx, numberOf(account))
}

async function isAttached(tx: TransactionSql, state: State): Promise<boolean> {
  const attached = await tx`
    select from senders
    where organization_id = ${state.organization_id} and phone_number_id = ${state.phone_number_id} and attached
  `
  return attached.length > 0
}

const numberOf = (state: Pick<State, 'organization_id' | 'phone_number_id'>) => ({
  organizationId: state.organization_id,
  phoneNumberId: state.phone_number_id,
})

/**
 * Opens the number's pace to its organization, or closes it. Whoever begins sends holds the row of the pace until the commit: after this
 * one, nobody begins a send without having seen the refusal.
 */
async function putPace(tx: TransactionSql, account: State) {
  const { phone_number_id: phoneNumberId, messages_per_second: perSecond } = account
  const intervalMs = 1_000 / (perSecond ?? usualPerSecond)
  // A platform service of the release before does not tell.
  const isTold = account.attached && perSecond !== undefined
  await tx`
    insert into pace as p (grp, interval_ms, open_for)
    select ${phoneNumberId}, ${intervalMs}, (
      select organization_id from senders where phone_number_id = ${phoneNumberId} and attached and refusal is null limit 1
    )
    on conflict (grp) do update set open_for = excluded.open_for,
      interval_ms = case when ${isTold} then excluded.interval_ms else p.interval_ms end
  `
}
