import { randomBytes } from 'node:crypto'
import type { Handler } from '@app/shared/api/contract.ts'
import type { beginSetup as contract } from '@app/shared/contracts/onboarding.ts'
import { Problem } from '@app/shared/api/problem.ts'
import type { App } from '../app.ts'
import { onboardingIdOf } from './onboardings.ts'
import { findSetup, refuseUnusable } from './setups.ts'

export const beginSetup: Handler<App, typeof contract> = async ({ sql }, { body }) => {
  const link = await findSetup(sql, body.token)
  refuseUnusable(link)
  // The page is of another link than the browser's newest: whose number would it be?
  if (link.id !== body.setup_link_id) throw new Problem('setup_link_inactive')
  const state = randomBytes(24).toString('base64url')
  await sql`
    insert into onboardings (organization_id, id, setup_link_id, step)
    values (${link.organizationId}, ${onboardingIdOf(state)}, ${link.id}, 'begun')
  `
  return { state }
}
