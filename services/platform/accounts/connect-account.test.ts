import { systemCaller } from '@app/shared/bus/ask.ts'
import { accountChanged } from '@app/shared/contracts/platform.ts'
import { newId } from '@app/shared/values/ids.ts'
import { unsealToken } from '@app/shared/secrets/account-token.ts'
import { untilSomebodyWaits } from '@app/test/lock-waits.ts'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { createTeam } from '../teams/create-team.ts'
import {
  ask,
  connect,
  knowNumber,
  newOrganization,
  newPhoneNumberId,
  startPeers,
  startTestApp,
  type TestApp,
} from '../testing/app.ts'
import { connectAccount } from './connect-account.ts'
import { disconnectAccount } from './disconnect-account.ts'

let it: TestApp
let peers: Awaited<ReturnType<typeof startPeers>>
beforeAll(async () => {
  it = await startTestApp()
})
afterAll(() => it.close())
beforeEach(async () => {
  it.upstream.asked.length = 0
  peers = await startPeers(it.app)
})
afterEach(() => peers.stop())

async function wanted() {
  const phone_number_id = newPhoneNumberId()
  knowNumber(it, phone_number_id)
  return {
    organization_id: await newOrganization(it.app),
    phone_number_id,
    access_token: 'EAAtoken',
    business_account_id: '900900',
  }
}

interface Row {
  organizationId: string
  id: string
  attached: boolean
  version: string
  sealedToken: string
}

const accountsOf = (phoneNumberId: string) => it.app.sql<Row[]>`
  select organization_id, id, attached, version, sealed_token from accounts where phone_number_id = ${phoneNumberId}
`

const eventsOf = (accountId: string) => it.app.sql<{ headers: object; state: unknown }[]>`
  select headers, convert_from(payload, 'UTF8')::json as state from outbox
  where subject = ${accountChanged.subject} and convert_from(payload, 'UTF8')::json ->> 'account_id' = ${accountId}
  order by seq
`

test('an organization, a team or a customer that is not there is refused without asking the upstream', async () => {
  const body = await wanted()
  const other = await ask(it.app, createTeam, { organization_id: await newOrganization(it.app), name: 'Other' })
  const faults = [
    { organization_id: newId('org') },
    { team_id: newId('team') },
    { team_id: other.id },
    { customer_id: newId('cus') },
  ]
  for (const fault of faults) {
    await expect(ask(it.app, connectAccount, { ...body, ...fault })).rejects.toMatchObject({
      failure: 'resource_not_found',
      param: Object.keys(fault)[0],
    })
  }
  expect(it.upstream.asked).toEqual([])
  expect(await accountsOf(body.phone_number_id)).toEqual([])
})

test.each([
  ['the number', { phone_number_id: newPhoneNumberId() }, 'phone_number_id'],
  ['the business account', { business_account_id: '900901' }, 'business_account_id'],
])('when the upstream does not show %s, nothing is attached and nobody is told', async (_, unknown, param) => {
  const body = { ...(await wanted()), ...unknown }
  await expect(ask(it.app, connectAccount, body)).rejects.toMatchObject({ failure: 'upstream_refused', param })
  expect(await accountsOf(body.phone_number_id)).toEqual([])
  expect(peers.told.messaging).toEqual([])
})

test('an upstream that is silent is unavailable when our own caller stops waiting', async () => {
  const body = await wanted()
  it.upstream.answers.set(`/${body.phone_number_id}`, 'silence')
  const caller = { ...systemCaller(), deadline: performance.now() + 200 }
  await expect(ask(it.app, connectAccount, body, { caller })).rejects.toMatchObject({ failure: 'upstream_unavailable' })
  expect(await accountsOf(body.phone_number_id)).toEqual([])
})

test('reads the number with its bearer, subscribes the app, and answers the account', async () => {
  const body = await wanted()
  const account = await ask(it.app, connectAccount, body)
  expect(account).toEqual({
    object: 'account',
    account_id: expect.stringMatching(/^acc_/),
    phone_number_id: body.phone_number_id,
    phone_number: '+15550783881',
    name: 'Acme Support',
    status: 'connected',
    upstream_status: 'CONNECTED',
    customer_id: null,
  })
  const fields = 'id,display_phone_number,verified_name,status,throughput,is_on_biz_app'
  expect(it.upstream.asked).toEqual([
    { line: `GET /v23.0/${body.phone_number_id}?fields=${fields}`, authorization: 'Bearer EAAtoken' },
    { line: 'POST /v23.0/900900/subscribed_apps', authorization: 'Bearer EAAtoken' },
  ])
})

test('messaging and directory have the state before it answers, and one event tells it', async () => {
  const body = await wanted()
  const { account_id } = await ask(it.app, connectAccount, body)
  const [state] = peers.told.messaging
  expect(state).toMatchObject({
    account_id,
    organization_id: body.organization_id,
    phone_number_id: body.phone_number_id,
    business_account_id: '900900',
    version: 1,
    phone_number: '+15550783881',
    customer: null,
    refusal: null,
    attached: true,
  })
  expect(peers.told.directory).toEqual([state])
  expect(await eventsOf(account_id)).toEqual([
    { headers: expect.objectContaining({ organization: body.organization_id, phone: body.phone_number_id }), state },
  ])
})

test('the token is sealed for this account: the database holds it nowhere, and another id does not open it', async () => {
  const { account_id, phone_number_id } = await connect(it, await newOrganization(it.app))
  const [row] = await accountsOf(phone_number_id ?? '')
  const sealed = row?.sealedToken ?? ''
  expect(sealed).not.toContain('EAAtoken')
  expect(unsealToken(it.app.sealKeys, sealed, account_id)).toBe('EAAtoken')
  expect(() => unsealToken(it.app.sealKeys, sealed, newId('acc'))).toThrow()
})

test.each([
  ['PENDING', 'onboarding', 'chat_number_not_verified'],
  ['RESTRICTED', 'degraded', 'account_restricted'],
  ['BANNED', 'disconnected', 'account_not_connected'],
  ['A_NEW_WORD', 'onboarding', 'chat_number_not_verified'],
])('a number that is %s is attached as %s', async (upstream_status, status, refusal) => {
  const account = await connect(it, await newOrganization(it.app), newPhoneNumberId(), { status: upstream_status })
  expect(account).toMatchObject({ status, upstream_status })
  expect(peers.told.messaging[0]).toMatchObject({ refusal, attached: true })
})

test('a number of which the platform says nothing that is known, when it is connected again, stays as it was', async () => {
  const body = await wanted()
  await ask(it.app, connectAccount, body)
  knowNumber(it, body.phone_number_id, { status: 'A_NEW_WORD' })
  expect(await ask(it.app, connectAccount, body)).toMatchObject({ status: 'connected', upstream_status: 'A_NEW_WORD' })
})

test('a number without name, status and a possible number is attached, with nulls', async () => {
  const bare = { display_phone_number: 'n/a', verified_name: '', status: null }
  expect(await connect(it, await newOrganization(it.app), newPhoneNumberId(), bare)).toMatchObject({
    phone_number: null,
    name: null,
    status: 'onboarding',
    upstream_status: null,
  })
})

test("goes to the team that is named, else to the organization's first, and stays with its own", async () => {
  const body = await wanted()
  const second = await ask(it.app, createTeam, { organization_id: body.organization_id, name: 'Second' })
  await ask(it.app, connectAccount, body)
  await ask(it.app, connectAccount, { ...body, team_id: second.id })
  await ask(it.app, connectAccount, body)
  const [first, ...then] = peers.told.messaging.map(({ team_id }) => team_id)
  expect(first).not.toBe(second.id)
  expect(then).toEqual([second.id, second.id])
})

test('the same organization again renews token and state under the same id, with the next version', async () => {
  const body = await wanted()
  const first = await ask(it.app, connectAccount, body)
  knowNumber(it, body.phone_number_id, { status: 'RESTRICTED', verified_name: 'New Name' })
  const second = await ask(it.app, connectAccount, { ...body, access_token: 'EAAother' })
  expect(second).toMatchObject({ account_id: first.account_id, status: 'degraded', name: 'New Name' })
  const [row, ...others] = await accountsOf(body.phone_number_id)
  expect(others).toEqual([])
  expect(unsealToken(it.app.sealKeys, row?.sealedToken ?? '', first.account_id)).toBe('EAAother')
  expect(peers.told.messaging.map(({ version }) => version)).toEqual([1, 2])
  expect(await eventsOf(first.account_id)).toHaveLength(2)
})

test('a detached number of the same organization is attached again', async () => {
  const body = await wanted()
  await ask(it.app, connectAccount, body)
  await it.app.sql`update accounts set attached = false where phone_number_id = ${body.phone_number_id}`
  await ask(it.app, connectAccount, body)
  expect(await accountsOf(body.phone_number_id)).toMatchObject([{ attached: true, version: '2' }])
  const [first = NaN, second = NaN] = peers.told.messaging.map((state) => Date.parse(state.attached_at ?? ''))
  expect(second).toBeGreaterThan(first)
})

test('who connects a number has it since then, not since before it waited: another one may have had it meanwhile', async () => {
  const body = await wanted()
  const { connecting, at } = await it.app.sql.begin(async (tx) => {
    await tx`select id from organizations where id = ${body.organization_id} for update`
    const connecting = ask(it.app, connectAccount, body)
    await untilSomebodyWaits(it.app.sql)
    const [{ at } = { at: new Date() }] = await tx<{ at: Date }[]>`select clock_timestamp()::timestamptz(3) as at`
    return { connecting: connecting.then(() => true), at }
  })
  await connecting
  const [attachedAt = NaN] = peers.told.messaging.map((state) => Date.parse(state.attached_at ?? ''))
  expect(attachedAt).toBeGreaterThanOrEqual(at.getTime())
})

test('a number is one organization at a time: elsewhere it is taken until it is detached', async () => {
  const body = await wanted()
  const organization_id = await newOrganization(it.app)
  await ask(it.app, connectAccount, body)
  await expect(ask(it.app, connectAccount, { ...body, organization_id })).rejects.toMatchObject({
    failure: 'number_taken',
    param: 'phone_number_id',
  })
  const { phone_number_id } = body
  await ask(it.app, disconnectAccount, { organization_id: body.organization_id, phone_number_id })
  const moved = await ask(it.app, connectAccount, { ...body, organization_id })
  expect(await accountsOf(body.phone_number_id)).toHaveLength(2)
  expect(peers.told.messaging.at(-1)).toMatchObject({ account_id: moved.account_id, organization_id })
})

test('of two organizations that connect one number at once, one has it', async () => {
  const body = await wanted()
  const organizations = [body.organization_id, await newOrganization(it.app)]
  const results = await Promise.allSettled(
    organizations.map((organization_id) => ask(it.app, connectAccount, { ...body, organization_id })),
  )
  expect(results.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
  const rejected = results.find((result) => result.status === 'rejected')
  expect(rejected?.reason).toMatchObject({ failure: 'number_taken' })
})

test('the same call twice at once makes one account', async () => {
  const body = await wanted()
  const [first, second] = await Promise.all([ask(it.app, connectAccount, body), ask(it.app, connectAccount, body)])
  expect(first.account_id).toBe(second.account_id)
  expect(await accountsOf(body.phone_number_id)).toMatchObject([{ version: '2' }])
})

test('a subscription that lapses just when a number is connected is minded in what others hear of the number', async () => {
  const body = await wanted()
  const { connecting } = await it.app.sql.begin(async (tx) => {
    await tx`update organizations set subscription = 'lapsed' where id = ${body.organization_id}`
    const connecting = ask(it.app, connectAccount, body)
    await Promise.race([connecting, untilSomebodyWaits(it.app.sql)])
    return { connecting }
  })
  await connecting
  expect(peers.told.messaging).toMatchObject([{ refusal: 'subscription_inactive' }])
})

test('while a peer is away it is unavailable, the event is recorded, and the same call again succeeds', async () => {
  const body = await wanted()
  await peers.stop()
  await expect(ask(it.app, connectAccount, body)).rejects.toMatchObject({ failure: 'service_unavailable' })
  const [row] = await accountsOf(body.phone_number_id)
  expect(await eventsOf(row?.id ?? '')).toHaveLength(1)
  peers = await startPeers(it.app)
  expect(await ask(it.app, connectAccount, body)).toMatchObject({ account_id: row?.id })
  expect(peers.told.directory).toHaveLength(1)
})
