import { randomBytes } from 'node:crypto'
import { fingerprintOf } from '@app/shared/api/json.ts'
import { registerNumber as contract } from '@app/shared/contracts/onboarding.ts'
import type { Caller } from '@app/shared/api/contract.ts'
import { systemCaller } from '@app/shared/bus/ask.ts'
import { newId } from '@app/shared/values/ids.ts'
import { untilSomebodyWaits } from '@app/test/lock-waits.ts'
import { sessionWithClock } from '@app/test/wrong-clock.ts'
import { until } from '@app/test/until.ts'
import { afterAll, afterEach, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest'
import {
  connect,
  knowNumber,
  newOrganization,
  newPhoneNumberId,
  startPeers,
  startTestApp,
  type TestApp,
} from '../testing/app.ts'
import type { UpstreamAnswer } from '../testing/upstream.ts'
import { hideFingerprint } from './hide-fingerprint.ts'
import { registerNumber } from './register-number.ts'

let it: TestApp
let peers: Awaited<ReturnType<typeof startPeers>>
beforeAll(async () => {
  it = await startTestApp()
})
afterAll(() => it.close())
beforeEach(async () => {
  peers = await startPeers(it.app)
})
afterEach(() => peers.stop())

async function pending(fields: object = {}) {
  const organizationId = await newOrganization(it.app)
  const phoneNumberId = newPhoneNumberId()
  await connect(it, organizationId, phoneNumberId, { status: 'PENDING', ...fields })
  it.upstream.asked.length = 0
  return { organizationId, phoneNumberId }
}

/** What the platform answers to a registration, and shows of the number then. */
function willAnswer(phoneNumberId: string, answer: UpstreamAnswer, status = 'CONNECTED') {
  it.upstream.answers.set(`/${phoneNumberId}/register`, answer)
  knowNumber(it, phoneNumberId, { status })
}

const success = { body: { success: true } }

async function register(caller: Caller, phoneNumberId: string, app = it.app) {
  const input = { params: { phone_number_id: phoneNumberId }, query: {}, body: { pin: '123456' } }
  const answer = await registerNumber(app, input, caller)
  const whole = answer as unknown as { body: Uint8Array; replayed: boolean }
  return { ...JSON.parse(Buffer.from(whole.body).toString()).data, replayed: whole.replayed }
}

const registrations = () => it.upstream.asked.filter(({ line }) => line.endsWith('/register'))

test('a pending number is connected, and messaging knows before the answer', async () => {
  const { organizationId, phoneNumberId } = await pending()
  willAnswer(phoneNumberId, success)
  const account = await register(systemCaller(organizationId), phoneNumberId)
  expect(account).toMatchObject({ phone_number_id: phoneNumberId, status: 'connected', upstream_status: 'CONNECTED' })
  expect(peers.told.messaging.at(-1)).toMatchObject({ phone_number_id: phoneNumberId, refusal: null, version: 2 })
  expect(registrations()).toEqual([{ line: `POST /v23.0/${phoneNumberId}/register`, authorization: 'Bearer EAAtoken' }])
  expect(await standing(phoneNumberId)).toMatchObject({ isDueSoon: false })
})

test('a number beside it in the organization stays as it is, whenever the platform answers', async () => {
  const { organizationId, phoneNumberId } = await pending()
  const [other, beside] = [newPhoneNumberId(), newPhoneNumberId()]
  for (const id of [other, beside]) await connect(it, organizationId, id, { status: 'PENDING' })
  await it.app.sql`update accounts set poll_at = now() + interval '1 hour' where organization_id = ${organizationId}`
  const before = await standing(beside)
  willAnswer(phoneNumberId, success)
  await register(systemCaller(organizationId), phoneNumberId)
  const { promise: after, resolve: letAnswer } = Promise.withResolvers<void>()
  willAnswer(other, { ...success, after })
  const registering = register(systemCaller(organizationId), other)
  await until(() => expect(registrations()).toHaveLength(2))
  await it.app.sql`update accounts set version = version + 1 where phone_number_id = ${other}`
  letAnswer()
  expect(await registering).toMatchObject({ status: 'onboarding' })
  expect(await standing(beside)).toEqual(before)
})

test('a number that the platform has registered and does not show so yet is asked about again soon', async () => {
  const { organizationId, phoneNumberId } = await pending()
  willAnswer(phoneNumberId, success, 'PENDING')
  expect(await register(systemCaller(organizationId), phoneNumberId)).toMatchObject({ status: 'onboarding' })
  expect(await standing(phoneNumberId)).toMatchObject({ isDueSoon: true })
})

test('a number that is registered is connected, though the platform does not tell at once what it is called now', async () => {
  const { organizationId, phoneNumberId } = await pending()
  willAnswer(phoneNumberId, success)
  it.upstream.answers.set(`/${phoneNumberId}`, error(2, 503))
  expect(await register(systemCaller(organizationId), phoneNumberId)).toMatchObject({ status: 'connected' })
})

test('the platform is not waited for longer than the caller waits', async () => {
  const { organizationId, phoneNumberId } = await pending()
  const { promise: after, resolve: letAnswer } = Promise.withResolvers<void>()
  willAnswer(phoneNumberId, { ...success, after })
  const deadline = performance.now() + 500
  const registering = register({ ...systemCaller(organizationId), deadline }, phoneNumberId)
  await expect(registering).rejects.toMatchObject({ failure: 'upstream_unavailable' })
  expect(performance.now() - deadline).toBeLessThan(10_000)
  letAnswer()
})

test('a connected number is answered without asking the platform', async () => {
  const organizationId = await newOrganization(it.app)
  const { phone_number_id } = await connect(it, organizationId)
  it.upstream.asked.length = 0
  expect(await register(systemCaller(organizationId), phone_number_id ?? '')).toMatchObject({ status: 'connected' })
  expect(it.upstream.asked).toEqual([])
})

test("a number of the phone's app is never registered, until it has left the app", async () => {
  const { organizationId, phoneNumberId } = await pending({ is_on_biz_app: true })
  const own = systemCaller(organizationId)
  it.upstream.answers.set(`/${phoneNumberId}/register`, success)
  expect(await register(own, phoneNumberId)).toMatchObject({ status: 'onboarding', upstream_status: 'PENDING' })
  knowNumber(it, phoneNumberId, { is_on_biz_app: true })
  expect(await register(own, phoneNumberId)).toMatchObject({ status: 'connected' })
  expect(registrations()).toEqual([])

  const other = await pending({ is_on_biz_app: true })
  willAnswer(other.phoneNumberId, success, 'PENDING')
  await register(systemCaller(other.organizationId), other.phoneNumberId)
  expect(registrations()).toHaveLength(1)
})

const error = (code: number, status = 400) => ({ status, body: { error: { message: 'No.', code } } })

test.each([
  ['the PIN is wrong', error(133005), { failure: 'registration_failed', param: 'pin' }],
  ['the number is not verified', error(133006), { failure: 'registration_failed' }],
  ['too many PINs were wrong', error(133008), { failure: 'rate_limit_exceeded', retryAfterSeconds: 3_600 }],
  ['PINs came too fast', error(133009), { failure: 'rate_limit_exceeded', retryAfterSeconds: 60 }],
  ['it was just deregistered', error(133015), { failure: 'rate_limit_exceeded', retryAfterSeconds: 300 }],
  ['it was tried ten times', error(133016), { failure: 'rate_limit_exceeded', retryAfterSeconds: 259_200 }],
  ['the platform refuses otherwise', error(100), { failure: 'upstream_refused' }],
  [
    'its deregistration was not finished',
    error(133000, 500),
    { failure: 'upstream_refused', message: expect.stringContaining('No.') },
  ],
  ['it takes no token at all', { status: 401, body: '' }, { failure: 'upstream_refused', param: undefined }],
  ['the platform is down', error(2, 503), { failure: 'upstream_unavailable' }],
  ['the platform breaks', { status: 502, body: '<html>' }, { failure: 'upstream_unavailable' }],
] as const)('when %s, it says so and nothing changes', async (_, answer, problem) => {
  const { organizationId, phoneNumberId } = await pending()
  willAnswer(phoneNumberId, answer, 'PENDING')
  await expect(register(systemCaller(organizationId), phoneNumberId)).rejects.toMatchObject(problem)
  const [row] = await it.app.sql`select status, version from accounts where phone_number_id = ${phoneNumberId}`
  expect(row).toMatchObject({ status: 'onboarding', version: '1' })
})

test("another organization's number and a detached one are not registered", async () => {
  const { organizationId, phoneNumberId } = await pending()
  const other = systemCaller(await newOrganization(it.app))
  await expect(register(other, phoneNumberId)).rejects.toMatchObject({ failure: 'resource_not_found' })
  await it.app
    .sql`update accounts set attached = false, status = 'disconnected' where phone_number_id = ${phoneNumberId}`
  const own = systemCaller(organizationId)
  await expect(register(own, phoneNumberId)).rejects.toMatchObject({ failure: 'account_not_connected' })
  expect(registrations()).toEqual([])
})

test('the same key again replays; after an unknown outcome it asks first whether the number is registered', async () => {
  const { organizationId, phoneNumberId } = await pending()
  const idempotency = { key: newId('req'), fingerprint: contract.subject }
  const caller = { ...systemCaller(organizationId), idempotency }
  willAnswer(phoneNumberId, 'hang up')
  await expect(register(caller, phoneNumberId)).rejects.toMatchObject({ failure: 'upstream_unavailable' })
  const first = await register(caller, phoneNumberId)
  expect(first).toMatchObject({ status: 'connected', replayed: false })
  expect(registrations()).toHaveLength(1)
  expect(await register(caller, phoneNumberId)).toEqual({ ...first, replayed: true })
})

test('of a PIN nothing is kept that tells it without the sealing key, and the same key still replays, also after a rotation', async () => {
  const { organizationId, phoneNumberId } = await pending()
  willAnswer(phoneNumberId, success)
  const fingerprintWith = (pin: string) => fingerprintOf(`POST /v1/${phoneNumberId}/register`, { pin })
  const callerWith = (pin: string) => ({
    ...systemCaller(organizationId),
    idempotency: { key: 'one', fingerprint: fingerprintWith(pin) },
  })
  const first = await register(callerWith('482916'), phoneNumberId)
  const [kept] = await it.app.sql<[{ fingerprint: string }]>`
    select fingerprint from idempotency.keys where organization_id = ${organizationId}
  `
  expect(kept.fingerprint).toMatch(/^k1\.[\w-]{43}$/)
  expect(kept.fingerprint).not.toContain(fingerprintWith('482916'))
  const { sealKeys } = it.app
  const k2 = randomBytes(32)
  it.app.sealKeys = { current: 'k2', byId: new Map([['k2', k2], ...sealKeys.byId]) }
  onTestFinished(() => void (it.app.sealKeys = sealKeys))
  expect(await register(callerWith('482916'), phoneNumberId)).toEqual({ ...first, replayed: true })
  await expect(register(callerWith('482917'), phoneNumberId)).rejects.toMatchObject({
    failure: 'idempotency_key_reuse',
  })
  // Once the key of then is gone, it is not made with none.
  it.app.sealKeys = { current: 'k2', byId: new Map([['k2', k2]]) }
  const { idempotency } = await hideFingerprint(it.app, callerWith('482916'))
  expect(idempotency?.fingerprint).toMatch(/^k2\.[\w-]{43}$/)
})

test('a retry of a registration whose answer was lost before messaging knew it tells the number again', async () => {
  const { organizationId, phoneNumberId } = await pending()
  const idempotency = { key: newId('req'), fingerprint: contract.subject }
  const caller = { ...systemCaller(organizationId), idempotency }
  willAnswer(phoneNumberId, success)
  await peers.stop()
  await expect(register(caller, phoneNumberId)).rejects.toMatchObject({ failure: 'service_unavailable' })
  await expect(register(caller, phoneNumberId)).rejects.toMatchObject({ failure: 'service_unavailable' })
  peers = await startPeers(it.app)
  expect(await register(caller, phoneNumberId)).toMatchObject({ status: 'connected', replayed: true })
  expect(peers.told.messaging).toMatchObject([{ phone_number_id: phoneNumberId, refusal: null, version: 2 }])
  expect(registrations()).toHaveLength(1)
})

test('a token that the platform takes no more is no field of a retry either', async () => {
  const { organizationId, phoneNumberId } = await pending()
  const caller = {
    ...systemCaller(organizationId),
    idempotency: { key: newId('req'), fingerprint: contract.subject },
  }
  willAnswer(phoneNumberId, 'hang up')
  await expect(register(caller, phoneNumberId)).rejects.toMatchObject({ failure: 'upstream_unavailable' })
  it.upstream.answers.set(`/${phoneNumberId}`, error(190, 401))
  const problem = { failure: 'upstream_refused', param: undefined }
  await expect(register(caller, phoneNumberId)).rejects.toMatchObject(problem)
})

test('a refusal of the platform is told, though nobody can be told what it says of the number', async () => {
  const { organizationId, phoneNumberId } = await pending()
  willAnswer(phoneNumberId, error(190, 401))
  await peers.stop()
  const registering = register(systemCaller(organizationId), phoneNumberId)
  await expect(registering).rejects.toMatchObject({ failure: 'upstream_refused' })
})

const standing = async (phoneNumberId: string) => {
  const [row] = await it.app.sql`
    select status, reported_until > now() as is_reported, poll_at <= now() + interval '3 seconds' as is_due_soon
    from accounts where phone_number_id = ${phoneNumberId}
  `
  return row
}

test.each([
  ['takes the token no more', error(190, 401), 'disconnected', 'account_not_connected'],
  ['has locked the business account', error(131031), 'degraded', 'account_restricted'],
] as const)(
  'when the platform %s, the number follows before the answer, and sends are refused',
  async (_, answer, status, refusal) => {
    const { organizationId, phoneNumberId } = await pending()
    willAnswer(phoneNumberId, answer)
    peers.told.messaging.length = 0
    await expect(register(systemCaller(organizationId), phoneNumberId)).rejects.toMatchObject({
      failure: 'upstream_refused',
    })
    expect(await standing(phoneNumberId)).toMatchObject({ status, isReported: true })
    expect(peers.told.messaging).toMatchObject([{ phone_number_id: phoneNumberId, refusal }])
  },
)

test('what the platform says of the token that a number had before it was connected again takes nothing from it, though the clock of the host is ahead', async () => {
  const { organizationId, phoneNumberId } = await pending()
  const app = { ...it.app, sql: await sessionWithClock(it.app.sql, -90_000) }
  const { promise: after, resolve: letAnswer } = Promise.withResolvers<void>()
  willAnswer(phoneNumberId, { ...error(190, 401), after })
  const registering = register(systemCaller(organizationId), phoneNumberId, app)
  await until(() => expect(registrations()).toHaveLength(1))
  await connect({ ...it, app }, organizationId, phoneNumberId)
  letAnswer()
  await expect(registering).rejects.toMatchObject({ failure: 'upstream_refused' })
  expect(await standing(phoneNumberId)).toMatchObject({ status: 'connected' })
})

test('a restriction that was reported stands until its end, though the platform shows the registered number connected', async () => {
  const { organizationId, phoneNumberId } = await pending()
  await it.app.sql`
    update accounts set status = 'degraded', reported_until = now() + interval '7 days' where phone_number_id = ${phoneNumberId}
  `
  willAnswer(phoneNumberId, success)
  const account = await register(systemCaller(organizationId), phoneNumberId)
  expect(account).toMatchObject({ status: 'degraded', upstream_status: 'CONNECTED' })
  expect(await standing(phoneNumberId)).toMatchObject({ status: 'degraded', isReported: true })
})

test('a disconnection that was reported is over when the platform registers the number', async () => {
  const { organizationId, phoneNumberId } = await pending()
  await it.app.sql`
    update accounts set status = 'disconnected', reported_until = now() + interval '7 days' where phone_number_id = ${phoneNumberId}
  `
  willAnswer(phoneNumberId, success)
  expect(await register(systemCaller(organizationId), phoneNumberId)).toMatchObject({ status: 'connected' })
  expect(await standing(phoneNumberId)).toMatchObject({ status: 'connected', isReported: null })
})

test('what was reported while the platform registered the number is newer than its answer', async () => {
  const { organizationId, phoneNumberId } = await pending()
  const { promise: after, resolve: letAnswer } = Promise.withResolvers<void>()
  willAnswer(phoneNumberId, { ...success, after })
  const registering = register(systemCaller(organizationId), phoneNumberId)
  await until(() => expect(registrations()).toHaveLength(1))
  await it.app.sql`
    update accounts set status = 'disconnected', reported_until = now() + interval '1 minute',
      poll_at = now() + interval '1 hour', version = version + 1
    where phone_number_id = ${phoneNumberId}
  `
  letAnswer()
  expect(await registering).toMatchObject({ status: 'disconnected' })
  expect(await standing(phoneNumberId)).toEqual({ status: 'disconnected', isReported: true, isDueSoon: true })
})

test('a subscription that lapses just when a number is registered is minded in what others hear of the number', async () => {
  const { organizationId, phoneNumberId } = await pending()
  willAnswer(phoneNumberId, success)
  const { registering } = await it.app.sql.begin(async (tx) => {
    await tx`update organizations set subscription = 'lapsed' where id = ${organizationId}`
    const registering = register(systemCaller(organizationId), phoneNumberId)
    await Promise.race([registering, untilSomebodyWaits(it.app.sql)])
    return { registering }
  })
  expect(await registering).toMatchObject({ status: 'connected' })
  expect(peers.told.messaging.at(-1)).toMatchObject({ version: 2, refusal: 'subscription_inactive' })
})
