import type { Caller, Handler, Input } from '@app/shared/api/contract.ts'
import { registerNumber as contract } from '@app/shared/contracts/onboarding.ts'
import type { TransactionSql } from '@app/shared/database/database.ts'
import { storedAnswer } from '@app/shared/idempotency/idempotency.ts'
import { onceInline } from '@app/shared/idempotency/once-inline.ts'
import { notFound, Problem } from '@app/shared/api/problem.ts'
import { unsealToken } from '@app/shared/secrets/account-token.ts'
import { statesOf } from '../accounts/account-states.ts'
import { changeAccount } from '../accounts/change-account.ts'
import { accountColumns, type AccountRow, toAccount } from '../accounts/accounts.ts'
import { statusOf } from '../accounts/status.ts'
import { tellStates } from '../accounts/tell-states.ts'
import type { App } from '../app.ts'
import { askAs } from '../health/ask-as.ts'
import { reportStands, type Standing, statusAfter } from '../health/standing.ts'
import { readNumber, type UpstreamNumber } from '../upstream/read-number.ts'
import { registerPhone, registrationProblem } from '../upstream/register-phone.ts'
import { isInBusinessApp } from '../upstream/throughput.ts'
import { hideFingerprint } from './hide-fingerprint.ts'

/** For both questions together. */
const budgetMs = 15_000
/** When the platform is asked next: of a number that it has registered, and of one that it does not show so yet. */
const settledMs = 60_000
const soonMs = 3_000

type Asked = Pick<Input<typeof contract>, 'params' | 'body'>
const columns = [...accountColumns, 'business_account_id', 'attached', 'sealed_token', 'messages_per_second', 'version']
type Row = AccountRow & {
  businessAccountId: string
  attached: boolean
  sealedToken: string | null
  messagesPerSecond: number | null
  version: string
}

/**
 * Registers a number with its PIN. Registering twice does no harm, so that whoever got no answer may ask again. A retry that is
 * answered from its key tells the number again, too: the first call may have been cut off before it did.
 */
export const registerNumber: Handler<App, typeof contract> = async (app, { params, body }, given) => {
  const caller = await hideFingerprint(app, given)
  const { organizationId } = caller
  const stored = await storedAnswer(app.sql, app.sealKeys, caller)
  const account = await find(app, caller, params.phone_number_id)
  const answer = stored ?? (await registerOnce(app, account, { params, body }, caller))
  await tellStates(app, await statesOf(app.sql, organizationId, account.id), caller)
  return answer
}

function registerOnce(app: App, account: Row, { params, body }: Asked, caller: Caller) {
  const { organizationId } = caller
  const place = { phoneNumberId: params.phone_number_id, businessAccountId: account.businessAccountId }
  return onceInline<typeof contract, boolean, Outcome>(app, contract, caller, {
    begin: (_tx, isRetry) => Promise.resolve(isRetry),
    call: (isRetry) => askAs(app, place, caller, () => register(app, account, { params, body }, caller, isRetry)),
    async finish(tx, _isRetry, outcome) {
      const write = () => keep(tx, organizationId, account, outcome)
      await changeAccount(tx, { organizationId, id: account.id }, write, caller)
      const [row] = await tx<[AccountRow]>`
        select ${tx(accountColumns)} from accounts where organization_id = ${organizationId} and id = ${account.id}
      `
      return toAccount(row)
    },
  })
}

/** `unchanged`: it is connected already, or never registered. Null: registered, and the platform did not tell at once what it is called now. */
type Outcome = UpstreamNumber | 'unchanged' | null

async function find({ sql }: App, { organizationId }: Caller, phoneNumberId: string) {
  const [row] = await sql<Row[]>`
    select ${sql(columns)} from accounts
    where organization_id = ${organizationId} and phone_number_id = ${phoneNumberId}
  `
  if (!row) throw notFound()
  return row
}

async function register(
  app: App,
  account: Row,
  { params, body }: Asked,
  caller: Caller,
  isRetry: boolean,
): Promise<Outcome> {
  if (account.status === 'connected') return 'unchanged'
  if (!account.attached || account.sealedToken === null) throw new Problem('account_not_connected')
  const { phone_number_id: phoneNumberId } = params
  const token = unsealToken(app.sealKeys, account.sealedToken, account.id)
  const deadline = Math.min(caller.deadline, performance.now() + budgetMs)
  // The earlier try may have registered it: each call counts at the platform. And what was in the phone's app may have left it.
  const asksBefore = isRetry || isInBusinessApp(account.messagesPerSecond)
  const before = asksBefore ? await readBefore(app, { phoneNumberId, token }, deadline) : null
  if (before && statusOf(before.status) === 'connected') return before
  if (before && isInBusinessApp(before.messagesPerSecond)) return 'unchanged'
  const registration = { phoneNumberId, token, pin: body.pin, region: body.data_localization_region }
  await registerPhone(app.upstream, registration, deadline)
  return readNumber(app.upstream, { phoneNumberId, token }, deadline).catch(() => null)
}

const readBefore = ({ upstream }: App, number: { phoneNumberId: string; token: string }, deadline: number) =>
  readNumber(upstream, number, deadline).catch((err: unknown) => {
    throw registrationProblem(err)
  })

/** Takes over what the platform said. What changed after it was asked is newer, and has it asked again. */
async function keep(tx: TransactionSql, organizationId: string, account: Row, outcome: Outcome) {
  if (outcome === 'unchanged') return
  const [known] = await tx<Standing[]>`
    select status, ${reportStands(tx)}, removed from accounts
    where organization_id = ${organizationId} and id = ${account.id} and version = ${account.version}
  `
  if (!known) {
    await tx`
      update accounts set poll_at = least(poll_at, now())
      where organization_id = ${organizationId} and id = ${account.id} and attached
    `
    return
  }
  // It knows the number and takes our token, so that a disconnection is over; a restriction, which it does not show, is not.
  const stands = known.status === 'degraded'
  const status = statusAfter({ ...known, isReported: known.isReported && stands }, outcome?.status ?? 'CONNECTED')
  await tx`
    update accounts set status = ${status}, upstream_status = coalesce(${outcome?.status ?? null}, upstream_status),
      name = coalesce(${outcome?.name ?? null}, name),
      phone_number = coalesce(${outcome?.phoneNumber ?? null}, phone_number),
      reported_until = case when ${stands} then reported_until end,
      poll_at = now() + ${status === 'onboarding' ? soonMs : settledMs} * interval '1 ms'
    where organization_id = ${organizationId} and id = ${account.id} and attached
  `
}
