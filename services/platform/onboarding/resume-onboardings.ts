import { systemCaller } from '@app/shared/bus/ask.ts'
import { type Loop, startLoop } from '@app/shared/work/loop.ts'
import type { App } from '../app.ts'
import { continueOnboarding } from './continue-onboarding.ts'
import { claimAbandoned, type OnboardingRow } from './onboardings.ts'

/** Walks that are gone on with at a time, by one instance: one whose platform is slow holds a place, and no other walk. */
const places = 8
const idleMs = 2_000
/** For all questions of one try, and well within its lease. */
const budgetMs = 22_000

const callerOf = ({ organizationId }: OnboardingRow) => ({
  ...systemCaller(organizationId),
  deadline: performance.now() + budgetMs,
})

/** Takes onboardings to their end whose token is there, and whose browser or process is not. */
export function startResuming(app: App): Loop {
  const going = new Set<Promise<void>>()
  const stopping = new AbortController()

  async function turn() {
    const free = places - going.size
    // Woken by the next one that ends.
    if (free === 0) return Infinity
    for (const row of await claimAbandoned(app.sql, free)) {
      const job = continueOnboarding(app, row, callerOf(row), stopping.signal)
        .catch((err: unknown) =>
          app.log.warn({ err, setupLink: row.setupLinkId, attempts: row.attempts }, 'onboarding'),
        )
        .finally(() => {
          going.delete(job)
          loop.wake()
        })
      going.add(job)
    }
    return idleMs
  }

  const loop = startLoop(app.log, 'resume onboardings', turn)
  loop.wake()
  return {
    wake: loop.wake,
    async stop() {
      stopping.abort()
      await loop.stop()
      await Promise.all(going)
    },
  }
}
