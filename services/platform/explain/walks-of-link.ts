import { type Moment, momentAt, standing } from '@app/shared/contracts/explain.ts'
import type { Sql } from '@app/shared/database/database.ts'
import type { OnboardingRow } from '../onboarding/onboardings.ts'
import type { Link } from '../setup-links/find-link.ts'

interface Walk extends Pick<
  OnboardingRow,
  'id' | 'step' | 'event' | 'businessAccountId' | 'phoneNumberId' | 'accountId' | 'attempts' | 'lastError'
> {
  /** Somebody works on it until then. */
  heldUntil: Date | null
  /** When it goes on by itself. */
  dueAt: Date | null
  createdAt: Date
  updatedAt: Date
}

/** A page that is opened begins one, sixty in an hour at most. */
const shownWalks = 20

/** The walks through the platform's dialog that were begun from the link: those that went on, and the newest. */
export async function walksOf(sql: Sql, { organizationId, id }: Link): Promise<Moment[]> {
  const walks = await sql<Walk[]>`
    select id, step, event, business_account_id, phone_number_id, account_id, attempts, last_error,
      case when held_until > now() then held_until end as held_until, due_at, created_at, updated_at
    from onboardings where organization_id = ${organizationId} and setup_link_id = ${id}
    order by step = 'begun' and attempts = 0, created_at desc limit ${shownWalks + 1}
  `
  if (walks.length === 0) return [standing('nobody has begun a walk through it, or that was over 30 days ago')]
  const shown = walks.slice(0, shownWalks).toSorted((a, b) => a.createdAt.getTime() - b.createdAt.getTime())
  return [
    ...(walks.length > shownWalks
      ? [standing(`only ${shownWalks} of its walks are shown: those that went on, and the newest`)]
      : []),
    ...shown.flatMap((walk) => [
      momentAt(walk.createdAt, 'its page was opened, and the dialog of the platform begun', { walk: nameOf(walk) }),
      momentAt(walk.updatedAt, whatOf(walk), detailsOf(walk)),
    ]),
  ]
}

/** Enough of the hash to tell walks from each other. */
const nameOf = ({ id }: Walk) => id.slice(0, 8)

const detailsOf = (walk: Walk) => ({
  walk: nameOf(walk),
  step: walk.step,
  attempts: walk.attempts,
  ...(walk.businessAccountId && { business_account_id: walk.businessAccountId, event: walk.event }),
  ...(walk.phoneNumberId !== null && { phone_number_id: walk.phoneNumberId }),
  ...(walk.accountId !== null && { account_id: walk.accountId }),
  ...(walk.heldUntil && { held_until: walk.heldUntil }),
  ...(walk.dueAt && { next_at: walk.dueAt }),
})

function whatOf(walk: Walk): string {
  const { step, attempts, lastError, accountId, heldUntil, phoneNumberId } = walk
  const because = lastError === null ? '' : `, after: ${lastError}`
  const going = heldUntil ? `attempt ${attempts} runs` : `attempt ${attempts + 1} is next${because}`
  switch (step) {
    case 'begun':
      return attempts === 0
        ? 'the dialog has told nothing: it is open still, or was left'
        : `the code of the dialog was not spent${because}; its page may try again`
    case 'exchanging':
      return heldUntil
        ? 'the code of the dialog is being spent'
        : 'broke off while the code was spent: its page may try again'
    case 'exchanged':
      return `the code is spent, and the number is being connected: ${going}`
    case 'connected':
      return phoneNumberId === null
        ? `is connected as ${accountId}, which waits for a number: ${going}`
        : `is connected as ${accountId}, and the rest is still to be asked for: ${going}`
    case 'done':
      return phoneNumberId === null
        ? `ended: ${accountId} is there, and waits for a number`
        : `ended: the number is connected as ${accountId}`
    case 'failed':
      return `was refused: ${lastError}`
  }
}
