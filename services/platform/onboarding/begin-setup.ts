import { randomBytes } from 'node:crypto'
import type { Handler } from '@app/shared/api/contract.ts'
import type { beginSetup as contract } from '@app/shared/contracts/onboarding.ts'
import { Problem } from '@app/shared/api/problem.ts'
import type { App } from '../app.ts'
import { onboardingIdOf } from './onboardings.ts'
import { findSetup, refuseUnusable } from './setups.ts'

/**
 * Walks of one link. Each may ask the platform what a code is worth, which is counted as our app's: whoever has a link could use up what
 * the platform allows for everybody's onboardings, from as many networks as it takes.
 */
const mostInAnHour = 60

export const beginSetup: Handler<App, typeof contract> = async ({ sql }, { body }) => {
  const link = await findSetup(sql, body.token)
  refuseUnusable(link)
  // A page whose address names no link is of the newest that the browser had then, and has another one now: whose number would it be?
  if (link.id !== body.setup_link_id) throw new Problem('setup_link_inactive')
  const state = randomBytes(24).toString('base64url')
  const { count } = await sql`
    insert into onboardings (organization_id, id, setup_link_id, step)
    select ${link.organizationId}, ${onboardingIdOf(state)}, ${link.id}, 'begun'
    where (
      select count(*) from (
        select from onboardings where organization_id = ${link.organizationId} and setup_link_id = ${link.id}
          and created_at > now() - interval '1 hour' limit ${mostInAnHour}
      ) recent
    ) < ${mostInAnHour}
  `
  if (count === 0) throw new Problem('rate_limit_exceeded')
  return { state }
}
