import { setTimeout as sleep } from 'node:timers/promises'
import { systemCaller } from '@app/shared/bus/ask.ts'
import { unsealToken } from '@app/shared/secrets/account-token.ts'
import { untilSomebodyWaits } from '@app/test/lock-waits.ts'
import { until } from '@app/test/until.ts'
import { beforeAll, expect, test } from 'vitest'
import { archiveCustomer } from '../customers/archive-customer.ts'
import { getCustomer } from '../customers/get-customer.ts'
import { updateCustomer } from '../customers/update-customer.ts'
import { createSetupLink } from '../setup-links/create-setup-link.ts'
import { revokeSetupLink } from '../setup-links/revoke-setup-link.ts'
import { ask, eventsOf, knowNumber, startPeers, type TestApp } from '../testing/app.ts'
import { appWithPeers } from '../testing/app-with-peers.ts'
import { beginAt, dialogOf, haveNumber, openSetup, showNumbers } from '../testing/onboarding.ts'
import type { UpstreamAnswer } from '../testing/upstream.ts'
import { beginSetup } from './begin-setup.ts'
import { completeSetup } from './complete-setup.ts'
import {
  claimAbandoned,
  claimOnboarding,
  fail,
  onboardingColumns,
  onboardingIdOf,
  type OnboardingRow,
  putOff,
  sweepOnboardings,
} from './onboardings.ts'
import { startResuming } from './resume-onboardings.ts'

const both = appWithPeers()
const { asked, setupOf } = both
let it: TestApp
beforeAll(() => void ({ it } = both))

const soon = () => performance.now() + 1_000

test('the dialog done: the number is the customer’s, the link is used, the customer active, and each is told in order', async () => {
  const opened = await openSetup(it, { success_redirect_url: 'https://app.example/ok?a=1' })
  const { organizationId, customerId, linkId, token, phoneNumberId } = opened
  expect(await setupOf(token)).toMatchObject({
    state: 'active',
    organization_name: 'Acme',
    customer_name: 'Bakery',
    success_url: null,
  })
  const answer = await ask(it.app, completeSetup, dialogOf(opened, await beginAt(it, opened)))
  expect(answer).toEqual({
    number: {
      phone_number_id: phoneNumberId,
      phone_number: '+1 555 078 3881',
      name: 'Bakery Bruno',
      registered: false,
    },
    success_url: `https://app.example/ok?a=1&customer_id=${customerId}&setup_link_id=${linkId}&status=success&phone_number_id=${phoneNumberId}`,
  })
  expect(await ask(it.app, getCustomer, undefined, opened.asOwner)).toMatchObject({
    status: 'active',
    accounts: [
      { phone_number_id: phoneNumberId, status: 'onboarding', upstream_status: 'PENDING', customer_id: customerId },
    ],
  })
  expect((await eventsOf(it.app, organizationId)).map(({ type }) => type)).toEqual([
    'customer.created',
    'customer.setup_link.created',
    'customer.onboarded',
    'customer.setup_link.consumed',
  ])
  expect(both.peers.told.messaging).toMatchObject([
    {
      phone_number_id: phoneNumberId,
      customer: { id: customerId },
      refusal: 'chat_number_not_verified',
      attached_at: expect.any(String),
    },
  ])
  expect(await setupOf(token)).toMatchObject({
    state: 'consumed',
    number: answer.number,
    success_url: answer.success_url,
  })
})

test('the code is spent with our secret, the token is kept sealed, and the app subscribed with it', async () => {
  const opened = await openSetup(it)
  await ask(it.app, completeSetup, dialogOf(opened, await beginAt(it, opened)))
  expect(it.upstream.asked).toEqual([
    {
      line: 'GET /v23.0/oauth/access_token?client_id=1234567890&client_secret=app-secret&code=AQcode',
      authorization: undefined,
    },
    { line: `POST /v23.0/${opened.businessAccountId}/subscribed_apps`, authorization: 'Bearer EAAbought' },
    { line: expect.stringContaining('/phone_numbers?fields='), authorization: 'Bearer EAAbought' },
  ])
  const [account] = await it.app.sql<{ id: string; sealedToken: string }[]>`
    select id, sealed_token from accounts where phone_number_id = ${opened.phoneNumberId}
  `
  expect(unsealToken(it.app.sealKeys, account?.sealedToken ?? '', account?.id ?? '')).toBe('EAAbought')
  const [onboarding] = await it.app
    .sql`select step, sealed_token from onboardings where setup_link_id = ${opened.linkId}`
  expect(onboarding).toEqual({ step: 'done', sealedToken: null })
})

test('the same result again, also after the answer was lost, is answered alike and spends nothing', async () => {
  const opened = await openSetup(it)
  const dialog = dialogOf(opened, await beginAt(it, opened))
  const first = await ask(it.app, completeSetup, dialog)
  const count = it.upstream.asked.length
  expect(await ask(it.app, completeSetup, dialog)).toEqual(first)
  expect(it.upstream.asked).toHaveLength(count)
})

test('a double click: one works, the other hears that it is at work', async () => {
  const opened = await openSetup(it)
  const dialog = dialogOf(opened, await beginAt(it, opened))
  // One that is asked when the other is done is answered as that was.
  const { promise: after, resolve: letAnswer } = Promise.withResolvers<void>()
  it.upstream.answers.set('/oauth/access_token', { body: { access_token: 'EAAbought' }, after })
  const clicks = [ask(it.app, completeSetup, dialog), ask(it.app, completeSetup, dialog)]
  await expect(Promise.race(clicks)).rejects.toMatchObject({ failure: 'setup_in_progress' })
  letAnswer()
  const results = await Promise.allSettled(clicks)
  expect(results.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
  expect(asked('/oauth/')).toBe(1)
})

test('two tabs: the second number does not go through a used link', async () => {
  const opened = await openSetup(it)
  const states = [await beginAt(it, opened), await beginAt(it, opened)]
  await ask(it.app, completeSetup, dialogOf(opened, states[0] ?? ''))
  await expect(ask(it.app, completeSetup, dialogOf(opened, states[1] ?? ''))).rejects.toMatchObject({
    failure: 'setup_link_inactive',
  })
})

test('the platform fails after the code is spent: the same result again goes on with what it bought', async () => {
  const opened = await openSetup(it)
  const dialog = dialogOf(opened, await beginAt(it, opened))
  it.upstream.answers.set(`/${opened.businessAccountId}/phone_numbers`, 'hang up')
  await expect(ask(it.app, completeSetup, dialog)).rejects.toMatchObject({ failure: 'upstream_unavailable' })
  expect(await setupOf(opened.token)).toMatchObject({ state: 'active' })
  showNumbers(it.upstream, opened.businessAccountId, [{ phoneNumberId: opened.phoneNumberId }])
  expect(await ask(it.app, completeSetup, dialog)).toMatchObject({ number: { phone_number_id: opened.phoneNumberId } })
  expect(asked('/oauth/')).toBe(1)
})

test('however often a page asks again while the platform is away, its walk goes on by itself soon after, with all of its tries', async () => {
  const opened = await openSetup(it)
  const dialog = dialogOf(opened, await beginAt(it, opened))
  it.upstream.answers.set(`/${opened.businessAccountId}/phone_numbers`, 'hang up')
  for (let n = 0; n < 4; n++) {
    await expect(ask(it.app, completeSetup, dialog)).rejects.toMatchObject({ failure: 'upstream_unavailable' })
  }
  const [row] = await it.app.sql`
    select attempts, due_at < now() + interval '6 s' as is_soon from onboardings where setup_link_id = ${opened.linkId}
  `
  expect(row).toEqual({ attempts: 1, isSoon: true })
})

test('the process dies and the browser is gone: it goes on by itself', async () => {
  const opened = await openSetup(it)
  const dialog = dialogOf(opened, await beginAt(it, opened))
  const numbers = `/${opened.businessAccountId}/phone_numbers`
  const { promise: after, resolve: endIt } = Promise.withResolvers<void>()
  it.upstream.answers.set(numbers, { after, status: 500, body: {} })
  const dying = ask(it.app, completeSetup, dialog).catch(() => {})
  await until(() => expect(asked(numbers)).toBe(1))
  showNumbers(it.upstream, opened.businessAccountId, [{ phoneNumberId: opened.phoneNumberId }])
  // As after a kill: the lease has lapsed, and nobody noted anything.
  await it.app.sql`
    update onboardings set held_until = held_until - interval '1 hour', due_at = due_at - interval '1 hour'
    where setup_link_id = ${opened.linkId}
  `
  const resuming = startResuming(it.app)
  await until(async () => expect(await setupOf(opened.token)).toMatchObject({ state: 'consumed' }))
  await resuming.stop()
  endIt()
  await dying
  expect(asked('/oauth/')).toBe(1)
})

/** A walk whose token is there, and whose browser is gone; due by itself now. */
async function abandoned(opened: Awaited<ReturnType<typeof openSetup>>) {
  const dialog = dialogOf(opened, await beginAt(it, opened))
  it.upstream.answers.set(`/${opened.businessAccountId}/phone_numbers`, 'hang up')
  await ask(it.app, completeSetup, dialog).catch(() => {})
  await it.app.sql`update onboardings set due_at = now() where setup_link_id = ${opened.linkId}`
}

test('it goes on by itself also where the platform takes seconds for each answer, and holds up no other', async () => {
  const slow = await openSetup(it)
  await abandoned(slow)
  showNumbers(it.upstream, slow.businessAccountId, [{ phoneNumberId: slow.phoneNumberId }])
  for (const path of ['subscribed_apps', 'phone_numbers'].map((name) => `/${slow.businessAccountId}/${name}`)) {
    const { body } = it.upstream.answers.get(path) as { body: unknown }
    it.upstream.answers.set(path, {
      body,
      get after() {
        return sleep(3_200)
      },
    })
  }
  it.upstream.asked.length = 0
  const resuming = startResuming(it.app)
  await until(() => expect(asked(slow.businessAccountId)).toBe(1))
  const quick = await openSetup(it)
  await abandoned(quick)
  showNumbers(it.upstream, quick.businessAccountId, [{ phoneNumberId: quick.phoneNumberId }])
  resuming.wake()
  await until(async () => expect(await setupOf(quick.token)).toMatchObject({ state: 'consumed' }))
  expect(await setupOf(slow.token)).toMatchObject({ state: 'active' })
  await until(async () => expect(await setupOf(slow.token)).toMatchObject({ state: 'consumed' }))
  await resuming.stop()
})

test('a stop waits for no answer about a walk that goes on by itself, and the walk stays', async () => {
  const opened = await openSetup(it)
  await abandoned(opened)
  const numbers = `/${opened.businessAccountId}/phone_numbers`
  it.upstream.answers.set(numbers, 'silence')
  it.upstream.asked.length = 0
  const resuming = startResuming(it.app)
  await until(() => expect(asked(numbers)).toBe(1))
  const stopsAt = performance.now()
  await resuming.stop()
  expect(performance.now() - stopsAt).toBeLessThan(3_000)
  const rows = await it.app.sql`
    select step, due_at is not null as is_due, held_until < now() as is_free from onboardings
    where setup_link_id = ${opened.linkId}
  `
  expect(rows).toEqual([{ step: 'exchanged', isDue: true, isFree: true }])
})

/** What a process has of a walk that it claimed, when its lease has lapsed. */
async function claimAndFreeze(walk: OnboardingRow, dialog: ReturnType<typeof dialogOf>) {
  const claimed = await claimOnboarding(it.app.sql, walk, dialog)
  if (!claimed) throw new Error('somebody has it')
  await it.app.sql`update onboardings set held_until = '-infinity' where setup_link_id = ${walk.setupLinkId}`
  return claimed
}

test('a process that was frozen over its lease changes nothing of what another one has brought to its end', async () => {
  const opened = await openSetup(it)
  const dialog = dialogOf(opened, await beginAt(it, opened))
  const { businessAccountId, phoneNumberId, linkId } = opened
  const numbers = `/${businessAccountId}/phone_numbers`
  const rowOf = async () => {
    const [row] = await it.app.sql<OnboardingRow[]>`
      select ${it.app.sql(onboardingColumns)}, due_at from onboardings where setup_link_id = ${linkId}
    `
    if (!row) throw new Error('no onboarding')
    return row
  }
  it.upstream.answers.set(numbers, 'hang up')
  await ask(it.app, completeSetup, dialog).catch(() => {})
  const frozen = await claimAndFreeze(await rowOf(), dialog)
  showNumbers(it.upstream, businessAccountId, [{ phoneNumberId }])
  await ask(it.app, completeSetup, dialog)
  const after = await rowOf()
  expect(after).toMatchObject({ step: 'done', dueAt: null })
  // It finds the link used, or the platform away.
  await fail(it.app.sql, frozen, new Error('used'), soon())
  await putOff(it.app.sql, frozen, new Error('away'), soon())
  expect(await rowOf()).toEqual(after)
})

test('a process that was frozen over its lease does not speak for the one that is at it now', async () => {
  const opened = await openSetup(it)
  const dialog = dialogOf(opened, await beginAt(it, opened))
  it.upstream.answers.set(`/${opened.businessAccountId}/phone_numbers`, 'hang up')
  await ask(it.app, completeSetup, dialog).catch(() => {})
  const walk = () => it.app.sql<OnboardingRow[]>`
    select ${it.app.sql(onboardingColumns)} from onboardings where setup_link_id = ${opened.linkId}
  `
  const [left] = await walk()
  if (!left) throw new Error('no walk')
  const frozen = await claimAndFreeze(left, dialog)
  await claimOnboarding(it.app.sql, frozen, dialog)
  const held = await walk()
  await fail(it.app.sql, frozen, new Error('used'), soon())
  await putOff(it.app.sql, frozen, new Error('away'), soon())
  expect(await walk()).toEqual(held)
})

test('a number that was connected by a try whose answer was lost is not said to have failed, though it was the last try', async () => {
  const setup = await openSetup(it)
  const state = await beginAt(it, setup)
  await ask(it.app, completeSetup, dialogOf(setup, state))
  const where = it.app.sql`organization_id = ${setup.organizationId} and id = ${onboardingIdOf(state)}`
  const [row] = await it.app.sql<OnboardingRow[]>`
    update onboardings set step = 'connected', due_at = now(), held_until = now() + interval '40 s' where ${where} returning ${it.app.sql(onboardingColumns)}
  `
  if (!row) throw new Error('no walk')
  await fail(it.app.sql, row, new Error('write CONNECTION_CLOSED'), soon())
  const [left] = await it.app.sql`select step, due_at is not null as is_due from onboardings where ${where}`
  expect(left).toEqual({ step: 'connected', isDue: true })
})

test('a code that is refused ends the walk, and the next one may succeed', async () => {
  const opened = await openSetup(it)
  const refusal = { status: 400, body: { error: { message: 'This authorization code has expired.', code: 100 } } }
  it.upstream.answers.set('/oauth/access_token', refusal)
  const dialog = dialogOf(opened, await beginAt(it, opened))
  for (let n = 0; n < 2; n++) {
    await expect(ask(it.app, completeSetup, dialog)).rejects.toMatchObject({ failure: 'upstream_refused' })
  }
  expect(asked('/oauth/')).toBe(1)
  haveNumber(it)
  expect(await ask(it.app, completeSetup, dialogOf(opened, await beginAt(it, opened)))).toHaveProperty('number')
})

test('while the platform is away, the code is tried again within its life', async () => {
  const opened = await openSetup(it)
  it.upstream.answers.set('/oauth/access_token', 'hang up')
  const done = ask(it.app, completeSetup, dialogOf(opened, await beginAt(it, opened)))
  await until(() => expect(asked('/oauth/')).toBeGreaterThan(0))
  it.upstream.answers.set('/oauth/access_token', { body: { access_token: 'EAAbought' } })
  expect(await done).toHaveProperty('number')
})

/** As a server that is starting up refuses, twice: what a statement that failed took of a sequence stays taken. */
async function refusingTwice(when: string, work: () => Promise<void>) {
  const { sql } = it.app
  await sql`create sequence refusals`
  await sql`
    create function refuse() returns trigger language plpgsql as $$ begin
      if nextval('refusals') <= 2 then
        raise exception 'the database system is starting up' using errcode = '57P03';
      end if;
      return new;
    end $$
  `
  await sql.unsafe(`
    create trigger refuse before update on onboardings for each row when (${when}) execute function refuse()
  `)
  try {
    await work()
  } finally {
    await sql`drop function refuse cascade`
    await sql`drop sequence refusals`
  }
}

test('what the code bought is kept also when the database is away just then', async () => {
  const opened = await openSetup(it)
  const dialog = dialogOf(opened, await beginAt(it, opened))
  await refusingTwice('old.sealed_token is null and new.sealed_token is not null', async () => {
    expect(await ask(it.app, completeSetup, dialog)).toHaveProperty('number')
    expect(asked('/oauth/')).toBe(1)
  })
})

test('a walk that is put off is let go of also when the database is away just then', async () => {
  const opened = await openSetup(it)
  const { businessAccountId, phoneNumberId, linkId } = opened
  const dialog = dialogOf(opened, await beginAt(it, opened))
  it.upstream.answers.set(`/${businessAccountId}/phone_numbers`, 'hang up')
  await refusingTwice('new.last_error is not null', async () => {
    await expect(ask(it.app, completeSetup, dialog)).rejects.toMatchObject({ failure: 'upstream_unavailable' })
  })
  const rows = await it.app.sql`
    select step, held_until < now() as is_free, due_at > now() as is_due from onboardings where setup_link_id = ${linkId}
  `
  expect(rows).toEqual([{ step: 'exchanged', isFree: true, isDue: true }])
  showNumbers(it.upstream, businessAccountId, [{ phoneNumberId }])
  expect(await ask(it.app, completeSetup, dialog)).toHaveProperty('number')
})

test('a walk that somebody goes on with is taken up by nobody else', async () => {
  const { linkId } = await openSetup(it)
  await it.app.sql`
    insert into onboardings (organization_id, id, setup_link_id, step, due_at)
    select organization_id, ${`walk of ${linkId}`}, id, 'exchanged', now() from setup_links where id = ${linkId}
  `
  const taken = async () => (await claimAbandoned(it.app.sql, 100)).filter(({ setupLinkId }) => setupLinkId === linkId)
  expect(await taken()).toHaveLength(1)
  expect(await taken()).toEqual([])
})

test('a walk without a token that is put off twice, since its first answer was lost, still waits for its browser alone', async () => {
  const opened = await openSetup(it)
  const dialog = dialogOf(opened, await beginAt(it, opened))
  const [row] = await it.app.sql<OnboardingRow[]>`
    update onboardings set step = 'exchanging', attempts = attempts + 1, held_until = now() + interval '40 s'
    where setup_link_id = ${opened.linkId} returning ${it.app.sql(onboardingColumns)}
  `
  if (!row) throw new Error('no walk')
  for (let n = 0; n < 2; n++) await putOff(it.app.sql, row, new Error('away'), soon())
  const rows = await it.app.sql`select step, due_at from onboardings where setup_link_id = ${opened.linkId}`
  expect(rows).toEqual([{ step: 'begun', dueAt: null }])
  expect(await ask(it.app, completeSetup, dialog)).toHaveProperty('number')
})

test('a walk whose number is connected is over also when the database is away just then', async () => {
  const opened = await openSetup(it)
  const dialog = dialogOf(opened, await beginAt(it, opened))
  await refusingTwice("new.step = 'done'", async () => {
    expect(await ask(it.app, completeSetup, dialog)).toHaveProperty('number')
  })
  const rows = await it.app.sql`
    select step, held_until < now() as is_free from onboardings where setup_link_id = ${opened.linkId}
  `
  expect(rows).toEqual([{ step: 'done', isFree: true }])
})

test('a number of which the list has a word of its own is asked itself, and without its answer waits for the next look', async () => {
  for (const registered of [true, false]) {
    const opened = await openSetup(it)
    showNumbers(it.upstream, opened.businessAccountId, [{ phoneNumberId: opened.phoneNumberId, status: 'LINKED' }])
    if (registered) knowNumber(it, opened.phoneNumberId)
    const answer = await ask(it.app, completeSetup, dialogOf(opened, await beginAt(it, opened)))
    expect(answer).toMatchObject({ number: { phone_number_id: opened.phoneNumberId, registered } })
  }
})

test('a connected number that is connected again goes on sending, though the platform does not say at once how it is', async () => {
  const opened = await openSetup(it)
  const { businessAccountId, phoneNumberId, asOwner } = opened
  showNumbers(it.upstream, businessAccountId, [{ phoneNumberId, status: 'CONNECTED' }])
  await ask(it.app, completeSetup, dialogOf(opened, await beginAt(it, opened)))
  const later = await ask(it.app, createSetupLink, {}, asOwner)
  const token = later.setup_url.slice(later.setup_url.lastIndexOf('/') + 1)
  const again = { ...opened, linkId: later.id, token }
  showNumbers(it.upstream, businessAccountId, [{ phoneNumberId, status: 'LINKED' }])
  const answer = await ask(it.app, completeSetup, dialogOf(again, await beginAt(it, again)))
  expect(answer).toMatchObject({ number: { phone_number_id: phoneNumberId, registered: true } })
  expect(both.peers.told.messaging.map(({ refusal, version }) => ({ refusal, version }))).toEqual([
    { refusal: null, version: 1 },
    { refusal: null, version: 2 },
  ])
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
  const [one, other] = [await openSetup(it), await openSetup(it)]
  for (let n = 0; n < 60; n++) await beginAt(it, one)
  await expect(beginAt(it, one)).rejects.toMatchObject({ failure: 'rate_limit_exceeded' })
  expect(await beginAt(it, other)).toMatch(/./)
  const { organizationId } = one
  await it.app.sql`
    update onboardings set created_at = created_at - interval '1 hour' where organization_id = ${organizationId}
  `
  expect(await beginAt(it, one)).toMatch(/./)
})

test("the number of the phone's app is found without being told, is connected as it is, and its data asked for", async () => {
  const opened = await openSetup(it)
  const phone = { phoneNumberId: opened.phoneNumberId, status: 'CONNECTED', is_on_biz_app: true }
  showNumbers(it.upstream, opened.businessAccountId, [{ phoneNumberId: '1999999999' }, phone])
  it.upstream.answers.set(`/${opened.phoneNumberId}/smb_app_data`, { body: { request_id: '1' } })
  const dialog = dialogOf(opened, await beginAt(it, opened), { event: 'business_app', phone_number_id: null })
  expect(await ask(it.app, completeSetup, dialog)).toMatchObject({
    number: { phone_number_id: opened.phoneNumberId, registered: true },
  })
  expect([asked('/smb_app_data'), asked('/register')]).toEqual([2, 0])
})

test.each<[string, UpstreamAnswer, number]>([
  ['is not available', 'hang up', 3],
  ['refuses', { status: 400, body: { error: { message: 'No.', code: 100 } } }, 2],
])(
  "a number of the phone's app is connected also where the platform %s to give its data, which is asked for again if that may help",
  async (_how, answer, times) => {
    const opened = await openSetup(it)
    const { phoneNumberId, linkId } = opened
    showNumbers(it.upstream, opened.businessAccountId, [{ phoneNumberId, status: 'CONNECTED', is_on_biz_app: true }])
    it.upstream.answers.set(`/${phoneNumberId}/smb_app_data`, answer)
    const dialog = dialogOf(opened, await beginAt(it, opened), { event: 'business_app' })
    for (let n = 0; n < 2; n++) {
      expect(await ask(it.app, completeSetup, dialog)).toMatchObject({ number: { phone_number_id: phoneNumberId } })
    }
    it.upstream.answers.set(`/${phoneNumberId}/smb_app_data`, { body: { request_id: '1' } })
    await it.app.sql`update onboardings set due_at = now() where setup_link_id = ${linkId} and due_at is not null`
    const resuming = startResuming(it.app)
    await until(async () => {
      const rows = await it.app.sql`select step, due_at from onboardings where setup_link_id = ${linkId}`
      expect(rows).toEqual([{ step: 'done', dueAt: null }])
    })
    await resuming.stop()
    expect(asked('/smb_app_data')).toBe(times)
  },
)

test('while messaging is away the number is connected all the same, and the event tells it', async () => {
  const opened = await openSetup(it)
  const dialog = dialogOf(opened, await beginAt(it, opened))
  await both.peers.stop()
  expect(await ask(it.app, completeSetup, dialog, { caller: systemCaller() })).toHaveProperty('number')
  both.peers = await startPeers(it.app)
})

test('a walk of a month ago that is taken up just when it is swept goes on', async () => {
  const { sql } = it.app
  const id = onboardingIdOf(await beginAt(it, await openSetup(it)))
  await sql`update onboardings set created_at = now() - interval '31 days' where id = ${id}`
  const sweep = await sql.begin(async (tx) => {
    await tx`update onboardings set step = 'exchanging', held_until = now() + interval '1 minute' where id = ${id}`
    const swept = sweepOnboardings(sql)
    await untilSomebodyWaits(sql)
    return { swept }
  })
  expect(await sweep.swept).toBe(0)
  // Its process died with the code.
  await sql`update onboardings set held_until = now() - interval '1 second' where id = ${id}`
  expect(await sweepOnboardings(sql)).toBe(1)
})
