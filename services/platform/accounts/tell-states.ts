import { call } from '@app/shared/bus/ask.ts'
import type { Caller } from '@app/shared/api/contract.ts'
import { putAccount } from '@app/shared/contracts/directory.ts'
import { putSender } from '@app/shared/contracts/messaging.ts'
import { Problem } from '@app/shared/api/problem.ts'
import type { App } from '../app.ts'
import type { AccountState } from './account-states.ts'

/** Numbers whose states are on their way at a time. */
const atOnce = 32

/** How long before the caller gives up it must be told that its change is saved; to tell of some ten thousand numbers takes longer. */
const ownTimeMs = 1_000
const saved = 'The change is saved, but not all numbers go by it yet. They will, without another request.'

/**
 * Hands states to the services that decide by them, after the commit and before our own answer: what they refuse then, they
 * refuse at once, and what they had begun is done. When one does not take them over, `service_unavailable`: asked again, we
 * tell again; and the events tell them in any case.
 */
export async function tellStates(app: App, states: AccountState[], caller: Caller): Promise<void> {
  const waiting = states.values()
  async function tellNext() {
    for (const state of waiting) await tell(app, state, caller)
  }
  await Promise.all(Array.from({ length: atOnce }, tellNext))
}

async function tell(app: App, state: AccountState, caller: Caller) {
  const asOwner = { ...caller, organizationId: state.organization_id, deadline: caller.deadline - ownTimeMs }
  try {
    await Promise.all([call(app, putSender, { body: state }, asOwner), call(app, putAccount, { body: state }, asOwner)])
  } catch (cause) {
    throw new Problem('service_unavailable', { message: saved, cause })
  }
}
