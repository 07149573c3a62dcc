import type { Answer, Caller, Handler, Input } from '@app/shared/api/contract.ts'
import type { completeSetup as contract } from '@app/shared/contracts/onboarding.ts'
import type { Sql } from '@app/shared/database/database.ts'
import { retryWhileAway } from '@app/shared/database/retry-while-away.ts'
import { notFound, Problem } from '@app/shared/api/problem.ts'
import { seal } from '@app/shared/secrets/seal.ts'
import type { App } from '../app.ts'
import { exchangeCode } from '../upstream/exchange-code.ts'
import { findConnected } from './connected-number.ts'
import { continueOnboarding } from './continue-onboarding.ts'
import {
  bindingOf,
  claimOnboarding,
  fail,
  findOnboarding,
  onboardingIdOf,
  type OnboardingRow,
  putOff,
} from './onboardings.ts'
import type { Link } from '../setup-links/find-link.ts'
import { successUrlOf } from './redirects.ts'
import { findSetup, refuseUnusable } from './setups.ts'

/** Everything here together, so that the page still gets an answer. */
const budgetMs = 22_000

export const completeSetup: Handler<App, typeof contract> = async (app, { body }, caller) => {
  const link = await findSetup(app.sql, body.token)
  const { organizationId, id: setupLinkId } = link
  const key = { organizationId, setupLinkId, id: onboardingIdOf(body.state) }
  const owner = { ...caller, organizationId, deadline: Math.min(caller.deadline, performance.now() + budgetMs) }
  const over = await findOnboarding(app.sql, key)
  if (!over) throw notFound()
  if (over.step === 'connected' || over.step === 'done') return answerOf(app.sql, link, over)
  if (over.step === 'failed') throw new Problem('upstream_refused', { message: over.lastError ?? undefined })
  refuseUnusable(link)
  const row = await claimOnboarding(app.sql, key, body)
  if (!row) throw new Problem('setup_in_progress')
  await continueOnboarding(app, await exchange(app, row, body, owner), owner)
  return answerOf(app.sql, link, await findOnboarding(app.sql, key))
}

/** Spends the code, and keeps what it bought before anything else is done. */
async function exchange(app: App, row: OnboardingRow, { code }: Input<typeof contract>['body'], caller: Caller) {
  if (row.sealedToken !== null) return row
  const token = await exchangeCode(app, code, caller.deadline).catch(async (err: unknown) => {
    const isFinal = err instanceof Problem && err.failure === 'upstream_refused'
    await (isFinal ? fail : putOff)(app.sql, row, err, caller.deadline)
    throw err
  })
  const sealedToken = seal(app.sealKeys, token, bindingOf(row))
  await keepToken(app.sql, row, sealedToken, caller.deadline)
  return { ...row, step: 'exchanged', sealedToken } satisfies OnboardingRow
}

/** No code buys it again: a database that is away just now is waited for. */
const keepToken = (sql: Sql, { organizationId, id }: OnboardingRow, sealedToken: string, deadline: number) =>
  retryWhileAway(
    () => sql`
      update onboardings set step = 'exchanged', sealed_token = ${sealedToken}, due_at = held_until, updated_at = now()
      where organization_id = ${organizationId} and id = ${id}
    `,
    deadline,
  )

/** As it is now: the link's URL may have changed, the number may be registered meanwhile. */
async function answerOf(sql: Sql, link: Link, onboarding: OnboardingRow | undefined): Promise<Answer<typeof contract>> {
  const number = await findConnected(sql, link.organizationId, onboarding?.accountId ?? null)
  if (!number) throw notFound()
  return { number, success_url: successUrlOf(link, number.phone_number_id) }
}
