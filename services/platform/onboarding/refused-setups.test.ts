import { untilSomebodyWaits } from '@app/test/lock-waits.ts'
import { until } from '@app/test/until.ts'
import { beforeAll, expect, test } from 'vitest'
import { archiveCustomer } from '../customers/archive-customer.ts'
import { updateCustomer } from '../customers/update-customer.ts'
import { revokeSetupLink } from '../setup-links/revoke-setup-link.ts'
import { ask, type TestApp } from '../testing/app.ts'
import { appWithPeers } from '../testing/app-with-peers.ts'
import { beginAt, dialogOf, openSetup, showNumbers } from '../testing/onboarding.ts'
import { beginSetup } from './begin-setup.ts'
import { completeSetup } from './complete-setup.ts'
import { startResuming } from './resume-onboardings.ts'

const both = appWithPeers()
const { asked, setupOf } = both
let it: TestApp
beforeAll(() => void ({ it } = both))

test('two tabs: the second number does not go through a used link', async () => {
  const opened = await openSetup(it)
  const states = [await beginAt(it, opened), await beginAt(it, opened)]
  await ask(it.app, completeSetup, dialogOf(opened, states[0] ?? ''))
  await expect(ask(it.app, completeSetup, dialogOf(opened, states[1] ?? ''))).rejects.toMatchObject({
    failure: 'setup_link_inactive',
  })
})

test('a number that is not of the business account is refused', async () => {
  const opened = await openSetup(it)
  const dialog = dialogOf(opened, await beginAt(it, opened), { phone_number_id: '1234567890' })
  await expect(ask(it.app, completeSetup, dialog)).rejects.toMatchObject({ failure: 'upstream_refused' })
  expect(await setupOf(opened.token)).toMatchObject({ state: 'active' })
})

test('a number of another customer, or of another organization, stays theirs', async () => {
  const first = await openSetup(it)
  await ask(it.app, completeSetup, dialogOf(first, await beginAt(it, first)))
  const { businessAccountId, phoneNumberId, organizationId } = first
  for (const known of [{ organizationId }, {}]) {
    const opened = { ...(await openSetup(it, {}, known)), businessAccountId, phoneNumberId }
    const done = ask(it.app, completeSetup, dialogOf(opened, await beginAt(it, opened)))
    await expect(done).rejects.toMatchObject({ failure: 'number_taken' })
    expect(await setupOf(opened.token)).toMatchObject({ state: 'active' })
  }
})

test('a link that expired, was revoked, or whose customer is suspended or archived, begins and completes nothing', async () => {
  const expired = await openSetup(it)
  const revoked = await openSetup(it)
  const suspended = await openSetup(it)
  const archived = await openSetup(it)
  const all = [expired, revoked, suspended, archived]
  const states = await Promise.all(all.map((opened) => beginAt(it, opened)))
  await it.app.sql`update setup_links set expires_at = now() - interval '1 ms' where id = ${expired.linkId}`
  const { caller, params } = revoked.asOwner
  await ask(it.app, revokeSetupLink, undefined, { caller, params: { ...params, link_id: revoked.linkId } })
  await ask(it.app, updateCustomer, { status: 'suspended' }, suspended.asOwner)
  await ask(it.app, archiveCustomer, undefined, archived.asOwner)
  const seen = await Promise.all(all.map(({ token }) => setupOf(token)))
  expect(seen.map(({ state }) => state)).toEqual(['expired', 'revoked', 'refused', 'revoked'])
  for (const [n, opened] of all.entries()) {
    const failure = opened === suspended ? 'customer_suspended' : 'setup_link_inactive'
    await expect(beginAt(it, opened)).rejects.toMatchObject({ failure })
    await expect(ask(it.app, completeSetup, dialogOf(opened, states[n] ?? ''))).rejects.toMatchObject({ failure })
  }
  expect(asked('/oauth/')).toBe(0)
})

test.each(['number', 'account_only'] as const)(
  'a link that is revoked while the code is spent attaches no %s',
  async (event) => {
    const opened = await openSetup(it)
    const told = { event, phone_number_id: event === 'number' ? opened.phoneNumberId : null }
    const dialog = dialogOf(opened, await beginAt(it, opened), told)
    it.upstream.answers.set(`/${opened.businessAccountId}/phone_numbers`, 'hang up')
    await ask(it.app, completeSetup, dialog).catch(() => {})
    const { caller, params } = opened.asOwner
    await ask(it.app, revokeSetupLink, undefined, { caller, params: { ...params, link_id: opened.linkId } })
    const numbers = event === 'number' ? [{ phoneNumberId: opened.phoneNumberId }] : []
    showNumbers(it.upstream, opened.businessAccountId, numbers)
    await it.app.sql`update onboardings set due_at = now() where setup_link_id = ${opened.linkId}`
    const resuming = startResuming(it.app)
    await until(async () => {
      const [row] = await it.app.sql`select step, sealed_token from onboardings where setup_link_id = ${opened.linkId}`
      expect(row).toEqual({ step: 'failed', sealedToken: null })
    })
    await resuming.stop()
    expect(await it.app.sql`select id from accounts where organization_id = ${opened.organizationId}`).toEqual([])
  },
)

test('a subscription that lapses just when a number is attached is minded: nothing is attached', async () => {
  const opened = await openSetup(it)
  const { organizationId } = opened
  const dialog = dialogOf(opened, await beginAt(it, opened))
  const done = await it.app.sql.begin(async (tx) => {
    await tx`update organizations set subscription = 'lapsed' where id = ${organizationId}`
    const outcome = ask(it.app, completeSetup, dialog).catch((err: unknown) => err)
    await Promise.race([outcome, untilSomebodyWaits(it.app.sql)])
    return { outcome }
  })
  expect(await done.outcome).toMatchObject({ failure: 'subscription_lapsed' })
  expect(await it.app.sql`select id from accounts where organization_id = ${organizationId}`).toEqual([])
})

test('a state is good for its own link, and a page for the browser’s newest', async () => {
  const one = await openSetup(it)
  const other = await openSetup(it)
  const stolen = dialogOf(one, await beginAt(it, other))
  await expect(ask(it.app, completeSetup, stolen)).rejects.toMatchObject({ failure: 'resource_not_found' })
  const mixed = { token: one.token, setup_link_id: other.linkId }
  await expect(ask(it.app, beginSetup, mixed)).rejects.toMatchObject({ failure: 'setup_link_inactive' })
  await expect(setupOf('x'.repeat(43))).rejects.toMatchObject({ failure: 'resource_not_found' })
})

test('a link begins 60 walks in an hour, and another one as many, so that nobody uses up what the platform allows us', async () => {
  const one = await openSetup(it)
  const { organizationId } = one
  const other = await openSetup(it, {}, { organizationId })
  for (let n = 0; n < 60; n++) await beginAt(it, one)
  await expect(beginAt(it, one)).rejects.toMatchObject({ failure: 'rate_limit_exceeded' })
  expect(await beginAt(it, other)).toMatch(/./)
  await it.app.sql`
    update onboardings set created_at = created_at - interval '1 hour' where organization_id = ${organizationId}
  `
  expect(await beginAt(it, one)).toMatch(/./)
})
