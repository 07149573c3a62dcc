import { systemCaller } from '@app/shared/bus/ask.ts'
import { type Loop, startLoop } from '@app/shared/work/loop.ts'
import type { App } from '../app.ts'
import { continueOnboarding } from './continue-onboarding.ts'
import { claimAbandoned, type OnboardingRow } from './onboardings.ts'

const atOnce = 8
const idleMs = 2_000
/** For all questions of one try; no longer, since a stop waits for it. */
const budgetMs = 6_000

const callerOf = ({ organizationId }: OnboardingRow) => ({
  ...systemCaller(organizationId),
  deadline: performance.now() + budgetMs,
})

/** Takes onboardings to their end whose token is there, and whose browser or process is not. */
export function startResuming(app: App): Loop {
  async function turn() {
    const rows = await claimAbandoned(app.sql, atOnce)
    await Promise.all(
      rows.map((row) =>
        continueOnboarding(app, row, callerOf(row)).catch((err: unknown) =>
          app.log.warn({ err, setupLink: row.setupLinkId, attempts: row.attempts }, 'onboarding'),
        ),
      ),
    )
    return rows.length === atOnce ? 0 : idleMs
  }
  const loop = startLoop(app.log, 'resume onboardings', turn)
  loop.wake()
  return loop
}
