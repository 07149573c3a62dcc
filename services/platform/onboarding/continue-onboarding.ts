import type { Caller } from '@app/shared/api/contract.ts'
import type { Sql } from '@app/shared/database/database.ts'
import { retryWhileAway } from '@app/shared/database/retry-while-away.ts'
import { Problem } from '@app/shared/api/problem.ts'
import { unsealToken } from '@app/shared/secrets/account-token.ts'
import { unseal } from '@app/shared/secrets/seal.ts'
import { tellStates } from '../accounts/tell-states.ts'
import type { App } from '../app.ts'
import type { ListedNumber } from '../upstream/list-numbers.ts'
import { requestSyncs } from '../upstream/request-syncs.ts'
import { subscribeApp } from '../upstream/subscribe-app.ts'
import { attachAccount } from './attach-account.ts'
import { chooseNumber } from './choose-number.ts'
import { bindingOf, fail, type OnboardingRow, putOff } from './onboardings.ts'

/**
 * Takes a claimed onboarding, whose token is there, to its end. What passes puts it off, and it goes on by itself; what the
 * platform or a rule of ours refuses ends it. Both are thrown until the number is connected, which it stays from then on.
 * `signal`: puts it off at once.
 */
export async function continueOnboarding(
  app: App,
  row: OnboardingRow,
  caller: Caller,
  signal?: AbortSignal,
): Promise<void> {
  const asking = { caller, signal }
  const connected = row.step === 'connected' ? row : await connectOrLeave(app, row, asking)
  if (connected.event === 'business_app' && !(await syncBusinessApp(app, connected, asking))) return
  await end(app.sql, row, caller.deadline)
}

/** The number is connected: a database that is away just now is waited for, so that nobody is told otherwise. */
const end = (sql: Sql, { organizationId, id }: OnboardingRow, deadline: number) =>
  retryWhileAway(
    () => sql`
      update onboardings set step = 'done', due_at = null, held_until = '-infinity', updated_at = now()
      where organization_id = ${organizationId} and id = ${id}
    `,
    deadline,
  )

interface Asking {
  caller: Caller
  signal: AbortSignal | undefined
}

async function connectOrLeave(app: App, row: OnboardingRow, asking: Asking) {
  try {
    return await connect(app, row, asking)
  } catch (err) {
    await (isOver(err, row) ? fail : putOff)(app.sql, row, err, asking.caller.deadline)
    throw err
  }
}

/** Some two days. */
const maxAttempts = 300

const isOver = (err: unknown, { attempts }: OnboardingRow) =>
  attempts >= maxAttempts || (err instanceof Problem && err.status < 500)

async function connect(app: App, row: OnboardingRow, { caller, signal }: Asking): Promise<OnboardingRow> {
  const token = unseal(app.sealKeys, row.sealedToken ?? '', bindingOf(row))
  const { businessAccountId } = row
  const { deadline } = caller
  await subscribeApp(app.upstream, { businessAccountId, token, signal }, deadline)
  const isTold = row.phoneNumberId !== null
  const number = await chooseNumber(app.upstream, row, { token, deadline, signal }, (numbers) =>
    isTold ? numbers : withoutOthers(app.sql, row, numbers),
  )
  const { accountId, states } = await attachAccount(app, row, { number, token }, caller)
  // The event tells them too, should one of them be away now.
  await tellStates(app, states, caller).catch((err: unknown) =>
    app.log.warn(
      { err, account: accountId },
      'the state of an account cannot be passed on now: the event passes it on',
    ),
  )
  return { ...row, step: 'connected', accountId, phoneNumberId: number?.phoneNumberId ?? null }
}

/** Without a word of the dialog, a number that another customer or organization has is none that was meant. */
async function withoutOthers(sql: Sql, { organizationId, setupLinkId }: OnboardingRow, numbers: ListedNumber[]) {
  const ids = numbers.map(({ phoneNumberId }) => phoneNumberId)
  const others = await sql<{ phoneNumberId: string }[]>`
    select a.phone_number_id from accounts a
    where a.attached and a.phone_number_id = any(${ids}::text[]) and not exists (
      select from setup_links l where l.organization_id = ${organizationId} and l.id = ${setupLinkId}
        and l.organization_id = a.organization_id and l.customer_id = coalesce(a.customer_id, l.customer_id)
    )
  `
  const taken = new Set(others.map(({ phoneNumberId }) => phoneNumberId))
  return numbers.filter(({ phoneNumberId }) => !taken.has(phoneNumberId))
}

/** Asks for what the phone's app has. False when it is put off; what the platform refuses for good is not to be had. */
async function syncBusinessApp(app: App, row: OnboardingRow, asking: Asking): Promise<boolean> {
  try {
    await askForData(app, row, asking)
    return true
  } catch (err) {
    app.log.warn(
      { err, account: row.accountId, attempts: row.attempts },
      'the data of the phone app cannot be asked for',
    )
    if (isOver(err, row)) return true
    await putOff(app.sql, row, err, asking.caller.deadline)
    return false
  }
}

async function askForData(app: App, { organizationId, accountId }: OnboardingRow, { caller, signal }: Asking) {
  const [account] = await app.sql<{ phoneNumberId: string; sealedToken: string; id: string }[]>`
    select id, phone_number_id, sealed_token from accounts
    where organization_id = ${organizationId} and id = ${accountId} and phone_number_id is not null
      and sealed_token is not null
  `
  if (!account) return
  const token = unsealToken(app.sealKeys, account.sealedToken, account.id)
  await requestSyncs(app, { phoneNumberId: account.phoneNumberId, token, signal }, caller.deadline)
}
