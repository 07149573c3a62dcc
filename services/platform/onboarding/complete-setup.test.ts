import { systemCaller } from '@app/shared/bus/ask.ts'
import { unsealToken } from '@app/shared/secrets/account-token.ts'
import { until } from '@app/test/until.ts'
import { beforeAll, expect, test } from 'vitest'
import { getCustomer } from '../customers/get-customer.ts'
import { createSetupLink } from '../setup-links/create-setup-link.ts'
import { ask, eventsOf, knowNumber, startPeers, type TestApp } from '../testing/app.ts'
import { appWithPeers } from '../testing/app-with-peers.ts'
import { beginAt, dialogOf, haveNumber, openSetup, showNumbers } from '../testing/onboarding.ts'
import type { UpstreamAnswer } from '../testing/upstream.ts'
import { completeSetup } from './complete-setup.ts'
import { onboardingIdOf } from './onboardings.ts'
import { startResuming } from './resume-onboardings.ts'

const both = appWithPeers()
const { asked, setupOf } = both
let it: TestApp
beforeAll(() => void ({ it } = both))

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

test('a walk that has begun beside it, at the same link or another one of the organization, stays as it is', async () => {
  const opened = await openSetup(it)
  const { organizationId } = opened
  const other = await openSetup(it, {}, { organizationId })
  const state = await beginAt(it, opened)
  const begun = [await beginAt(it, opened), await beginAt(it, other)]
  const others = () => it.app.sql`
    select * from onboardings
    where organization_id = ${organizationId} and id <> ${onboardingIdOf(state)} order by created_at
  `
  const before = await others()
  expect(before).toHaveLength(begun.length)
  await ask(it.app, completeSetup, dialogOf(opened, state))
  expect(await others()).toEqual(before)
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
