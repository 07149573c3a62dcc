import type { AccountState } from '../accounts/account-states.ts'
import type { Caller, Handler, Input } from '@app/shared/contract.ts'
import { registerNumber as contract } from '@app/shared/contracts/onboarding.ts'
import type { TransactionSql } from '@app/shared/database.ts'
import { once, storedAnswer } from '@app/shared/idempotency.ts'
import { notFound, Problem } from '@app/shared/problem.ts'
import { unseal } from '@app/shared/seal.ts'
import { changeAccount } from '../accounts/change-account.ts'
import { accountColumns, type AccountRow, toAccount } from '../accounts/accounts.ts'
import { statusOf } from '../accounts/status.ts'
import { tellStates } from '../accounts/tell-states.ts'
import type { App } from '../app.ts'
import { readNumber, type UpstreamNumber } from '../upstream/read-number.ts'
import { registerPhone } from '../upstream/register-phone.ts'

/** For both questions together. */
const budgetMs = 15_000
/** When the platform is asked next: of a number that it shows connected, and of one that it does not yet. */
const settledMs = 60_000
const soonMs = 3_000

type Asked = Pick<Input<typeof contract>, 'params' | 'body'>
const columns = [...accountColumns, 'attached', 'sealed_token']
type Row = AccountRow & { attached: boolean; sealedToken: string | null }

/** Registers a number with its PIN. Registering twice does no harm, so that whoever got no answer may ask again. */
export const registerNumber: Handler<App, typeof contract> = async (app, { params, body }, caller) => {
  const { organizationId } = caller
  const stored = await storedAnswer(app.sql, app.sealKeys, caller)
  if (stored) return stored
  const account = await find(app, caller, params.phone_number_id)
  const isConnected = account.status === 'connected'
  const number = isConnected ? 'unchanged' : await register(app, account, { params, body }, caller)
  let states: AccountState[] = []
  const answer = await once(app, contract, caller, async (tx) => {
    states = await changeAccount(
      tx,
      { organizationId, id: account.id },
      () => keep(tx, account, number, organizationId),
      caller,
    )
    const [row] = await tx<[AccountRow]>`
      select ${tx(accountColumns)} from accounts
      where organization_id = ${organizationId} and id = ${account.id}
    `
    return toAccount(row)
  })
  await tellStates(app, states, caller)
  return answer
}

async function find({ sql }: App, { organizationId }: Caller, phoneNumberId: string) {
  const [row] = await sql<Row[]>`
    select ${sql(columns)} from accounts
    where organization_id = ${organizationId} and phone_number_id = ${phoneNumberId}
  `
  if (!row) throw notFound()
  return row
}

/** Answers the number as it is then; without its word when the platform does not tell it at once. */
async function register(app: App, account: Row, { params, body }: Asked, caller: Caller): Promise<Registered> {
  if (!account.attached || account.sealedToken === null) throw new Problem('account_not_connected')
  const { phone_number_id: phoneNumberId } = params
  const token = unseal(app.sealKeys, account.sealedToken, `account:${account.id}`)
  const deadline = Math.min(caller.deadline, performance.now() + budgetMs)
  const registration = { phoneNumberId, token, pin: body.pin, region: body.data_localization_region }
  await registerPhone(app.upstream, registration, deadline)
  // It is registered: what it is called now, the next poll tells too.
  return readNumber(app.upstream, { phoneNumberId, token }, deadline).catch(() => null)
}

type Registered = UpstreamNumber | null

async function keep(tx: TransactionSql, account: Row, number: Registered | 'unchanged', organizationId: string) {
  if (number === 'unchanged') return
  const status = statusOf(number?.status ?? 'CONNECTED') ?? account.status
  await tx`
    update accounts set status = ${status}, upstream_status = coalesce(${number?.status ?? null}, upstream_status),
      name = coalesce(${number?.name ?? null}, name), phone_number = coalesce(${number?.phoneNumber ?? null}, phone_number),
      reported_until = null, poll_at = now() + ${status === 'connected' ? settledMs : soonMs} * interval '1 ms'
    where organization_id = ${organizationId} and id = ${account.id}
  `
}
