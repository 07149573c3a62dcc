import { systemCaller } from '@app/shared/bus/ask.ts'
import { retryWhileAway } from '@app/shared/database/retry-while-away.ts'
import { unsealToken } from '@app/shared/secrets/account-token.ts'
import { changeAccount } from '../accounts/change-account.ts'
import { tellStates } from '../accounts/tell-states.ts'
import type { App } from '../app.ts'
import { adoptNumber } from '../onboarding/adopt-number.ts'
import { readNumber, type UpstreamNumber } from '../upstream/read-number.ts'
import { upstreamErrorOf } from '../upstream/refusals.ts'
import { pollAgainMs } from './standing.ts'
import { confirmAccount, takeOver } from './take-over.ts'
import { type DueAccount, nextPollAt } from './due-account.ts'

const budgetMs = 15_000
/** How long it may take to record the answer, or that there was none; with the question it is well within the lease. */
const recordingMs = 10_000

/** Asks for one number and takes over what the platform says. */
export async function pollAccount(app: App, account: DueAccount, signal: AbortSignal): Promise<void> {
  const token = unsealToken(app.sealKeys, account.sealedToken, account.id)
  const { phoneNumberId } = account
  if (phoneNumberId === null) {
    const deadline = performance.now() + budgetMs
    await adoptNumber(app, account, { token, deadline, signal }).catch((err: unknown) =>
      app.log.info({ err, account: account.id }, 'the business account has no number yet'),
    )
    return release(app, account)
  }
  const number = await ask(app, { phoneNumberId, token, signal })
  if (number === null) return release(app, account)
  if (number === 'throttled') return release(app, account, throttledFailures)
  await retryWhileAway(() => settle(app, account, number), performance.now() + recordingMs)
}

/** What the platform says of the number; without its fields where it is gone, null when it did not say. */
async function ask({ upstream, log }: App, question: { phoneNumberId: string; token: string; signal: AbortSignal }) {
  try {
    return await readNumber(upstream, question, performance.now() + budgetMs)
  } catch (err) {
    const refusal = upstreamErrorOf(err)
    log.info({ err, number: question.phoneNumberId, code: refusal?.code }, 'poll')
    if (!refusal) return null
    return isGone(refusal) ? 'gone' : throttling.has(refusal.code) ? 'throttled' : null
  }
}

/** The budget of calls of the app, and of the business account: asking sooner would keep it used up. */
const throttling = new Set([4, 17, 613, 80007, 80008])
const throttledFailures = 4

/** The token is void, or the number is not there: also for one that the platform does not show any more. */
const isGone = ({ code, subcode }: { code: number; subcode: number | undefined }) =>
  code === 0 || code === 190 || code === 33 || (code === 100 && subcode === 33)

/** Asked without an answer: it is asked again, later each time; one that was let go is left alone. A database that is away just now is waited for, as of an answer. */
async function release({ sql }: App, account: DueAccount, failures = account.pollFailures) {
  const statement = () => sql`
    update accounts set poll_held_until = '-infinity', poll_failures = ${failures + 1}, polled_at = now(),
      poll_at = ${nextPollAt(sql, pollAgainMs(failures))}
    where organization_id = ${account.organizationId} and id = ${account.id}
      and poll_held_until = ${account.heldUntil}::timestamptz
  `
  await retryWhileAway(statement, performance.now() + recordingMs)
}

async function settle(app: App, account: DueAccount, answer: UpstreamNumber | 'gone') {
  if (await confirmAccount(app.sql, account, answer)) return
  const caller = systemCaller(account.organizationId)
  const states = await app.changeInLine(account.organizationId, () =>
    app.sql.begin((tx) => changeAccount(tx, account, () => takeOver(tx, account, answer), caller)),
  )
  const changed = states.filter(({ version }) => version > Number(account.version))
  if (changed.length === 0) return
  app.relay.wake()
  await tellStates(app, changed, caller)
}
