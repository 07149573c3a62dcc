import { Problem } from '@app/shared/api/problem.ts'
import type { Upstream } from '@app/shared/outside/upstream.ts'
import { statusOf } from '../accounts/status.ts'
import { type ListedNumber, listNumbers } from '../upstream/list-numbers.ts'
import { readNumber } from '../upstream/read-number.ts'
import type { OnboardingRow } from './onboardings.ts'

/** The number's own word is not worth a longer wait: whoever was in the dialog is looking at the page. */
const itselfMs = 5_000

type Wanted = Pick<OnboardingRow, 'event' | 'phoneNumberId' | 'businessAccountId'>

/**
 * The number that the dialog told, which must be one of the business account; where it told none, the only one there is.
 * The list may have words of its own for a state, such as LINKED: then the number itself is asked, and what it does not
 * answer the next look brings. `among`: those of them that may be chosen.
 */
export async function chooseNumber(
  upstream: Upstream,
  wanted: Wanted,
  { token, deadline, signal }: { token: string; deadline: number; signal?: AbortSignal | undefined },
  among: (numbers: ListedNumber[]) => ListedNumber[] | Promise<ListedNumber[]>,
): Promise<ListedNumber | null> {
  const { businessAccountId } = wanted
  const numbers = await listNumbers(upstream, { businessAccountId, token, signal }, deadline)
  const number = chosenOf(wanted, await among(numbers))
  if (number === null || statusOf(number.status) !== undefined) return number
  const { phoneNumberId } = number
  const soon = Math.min(deadline, performance.now() + itselfMs)
  const itself = await readNumber(upstream, { phoneNumberId, token, signal }, soon).catch(() => number)
  return { ...number, status: itself.status }
}

function chosenOf({ event, phoneNumberId }: Wanted, numbers: ListedNumber[]): ListedNumber | null {
  if (phoneNumberId !== null) {
    const told = numbers.find((number) => number.phoneNumberId === phoneNumberId)
    if (told) return told
    throw new Problem('upstream_refused', { message: 'The number is not one of the business account.' })
  }
  const candidates = event === 'business_app' ? numbers.filter((number) => number.isInBusinessApp) : numbers
  return candidates.length === 1 ? (candidates[0] ?? null) : null
}
