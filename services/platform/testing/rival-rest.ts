import { until } from '@app/test/until.ts'
import { expect } from 'vitest'
import type { App } from '../app.ts'
import { startResuming } from '../onboarding/resume-onboardings.ts'

/**
 * What nobody could go on with before a lease is over, though nobody is at work on it. Not accounts that wait for a number: one
 * whose number came to another account is asked for once more when its lease is over, and ends.
 */
export async function whatIsHeld({ sql }: App, organizationIds: string[]): Promise<string[]> {
  const numbers = await sql<object[]>`
    select id, phone_number_id, customer_id, status, poll_failures from accounts
    where organization_id = any(${organizationIds}::text[]) and attached and phone_number_id is not null
      and poll_held_until > now()
  `
  const walks = await sql<{ step: string; event: string; lastError: string | null }[]>`
    select step, event, last_error from onboardings
    where organization_id = any(${organizationIds}::text[]) and held_until > now()
  `
  return [
    ...numbers.map((number) => `A number is held: ${JSON.stringify(number)}`),
    ...walks.map((walk) => `A walk is held: ${JSON.stringify(walk)}`),
  ]
}

/** Goes on with all walks that were put off, as if their time had come; answers those that do not end by it. */
export async function endWalks(app: App, organizationIds: string[]): Promise<string[]> {
  const { sql } = app
  const resuming = startResuming(app)
  const open = () => sql<{ id: string; step: string; event: string; lastError: string | null }[]>`
    select id, step, event, last_error from onboardings
    where organization_id = any(${organizationIds}::text[]) and step in ('exchanging', 'exchanged', 'connected')
  `
  const end = async () => {
    for (const { id } of await open()) {
      await sql`update onboardings set due_at = now() where id = ${id} and due_at > now() and held_until < now()`
    }
    resuming.wake()
    expect([...(await open())]).toEqual([])
  }
  await until(end, 10_000).catch(() => undefined)
  await resuming.stop()
  return (await open()).map((walk) => `A walk does not end: ${JSON.stringify(walk)}`)
}
