import { isDeepStrictEqual } from 'node:util'
import { systemCaller } from '@app/shared/bus/ask.ts'
import { accountChanged } from '@app/shared/contracts/platform.ts'
import { newId } from '@app/shared/values/ids.ts'
import { untilSomebodyWaits } from '@app/test/lock-waits.ts'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { ask, connect, newOrganization, startPeers, startTestApp, type TestApp } from '../testing/app.ts'
import { authenticateKey } from '../keys/authenticate-key.ts'
import { createKey } from '../keys/create-key.ts'
import { hashOf } from '../keys/keys.ts'
import { refusingManyRows } from '@app/test/refuse-many-rows.ts'
import { updateOrganization } from './update-organization.ts'

let it: TestApp
let peers: Awaited<ReturnType<typeof startPeers>>
beforeAll(async () => {
  it = await startTestApp()
})
afterAll(() => it.close())
/** An organization with two connected numbers, and its account ids in order. */
async function withTwoNumbers() {
  const id = await newOrganization(it.app)
  const accounts = [await connect(it, id), await connect(it, id)].map(({ account_id }) => account_id)
  return { id, accounts: accounts.toSorted() }
}

/** The same, and nothing was told yet. */
async function organizationWithNumbers() {
  const made = await withTwoNumbers()
  peers.told.messaging.length = 0
  peers.told.directory.length = 0
  return made
}

const eventsOf = (organizationId: string) => it.app.sql<{ state: Record<string, unknown> }[]>`
  select convert_from(payload, 'UTF8')::json as state from outbox
  where subject = ${accountChanged.subject} and headers ->> 'organization' = ${organizationId}
  order by seq
`

const byAccount = (states: { account_id: string }[]) =>
  states.toSorted((a, b) => (a.account_id < b.account_id ? -1 : 1)).map(({ account_id }) => account_id)

/** Each waits until no gateway goes by the former features or tier. */
describe.concurrent('features and tier:', () => {
  beforeAll(async () => {
    peers = await startPeers(it.app)
  })
  afterAll(() => peers.stop())

  test('changes what is named and nothing else', async () => {
    const organization_id = await newOrganization(it.app, { settings: { ordering: 'relaxed' }, retention_days: 7 })
    const settings = { message_ttl_hours: 48 }
    const changed = await ask(it.app, updateOrganization, { organization_id, tier: 'unlimited', settings })
    expect(changed).toMatchObject({ name: 'Acme', tier: 'unlimited', retention_days: 7, subscription: 'active' })
    expect(changed.settings).toMatchObject({ ordering: 'relaxed', message_ttl_hours: 48, window_check: 'strict' })
    const cleared = await ask(it.app, updateOrganization, { organization_id, retention_days: null })
    expect(cleared).toMatchObject({ tier: 'unlimited', retention_days: null })
  })

  test('another organization stays as it is', async () => {
    const [id, other] = [await newOrganization(it.app), await newOrganization(it.app, { retention_days: 7 })]
    const row = () => it.app.sql`select * from organizations where id = ${other}`
    const before = await row()
    await ask(it.app, updateOrganization, { organization_id: id, name: 'New', tier: 'starter', subscription: 'lapsed' })
    expect(await row()).toEqual(before)
  })

  test('an organization without the entitlement messaging is refused by that, and allowed again with it', async () => {
    const { id } = await withTwoNumbers()
    await ask(it.app, updateOrganization, { organization_id: id, features: ['webhooks'] })
    const told = (version: number) =>
      peers.told.messaging.flatMap((state) =>
        state.organization_id === id && state.version === version ? [state.refusal] : [],
      )
    expect(told(2)).toEqual(['feature_not_entitled', 'feature_not_entitled'])
    await ask(it.app, updateOrganization, { organization_id: id, features: ['messaging'] })
    expect(told(3)).toEqual([null, null])
  })

  test('is answered when no gateway goes by the former features or tier any more', async () => {
    const changes = [{ features: ['messaging' as const] }, { tier: 'starter' as const }]
    const keptMs = await Promise.all(
      changes.map(async (change) => {
        const organization_id = await newOrganization(it.app)
        const { key } = await ask(it.app, createKey, { organization_id, label: 'x' })
        const look = () => ask(it.app, authenticateKey, { key_hash: hashOf(key) })
        const before = await look()
        let lastBeforeAt = performance.now()
        const changing = ask(it.app, updateOrganization, { organization_id, ...change })
        for (;;) {
          const askedAt = performance.now()
          if (!isDeepStrictEqual(await look(), before)) break
          lastBeforeAt = askedAt
        }
        await changing
        return performance.now() - lastBeforeAt
      }),
    )
    for (const ms of keptMs) expect(ms).toBeGreaterThan(2_000)
  })

  test('what the numbers do not depend on makes no event and tells nobody', async () => {
    const { id } = await withTwoNumbers()
    const before = await eventsOf(id)
    await ask(it.app, updateOrganization, { organization_id: id, name: 'New', tier: 'starter' })
    expect(await eventsOf(id)).toEqual(before)
    expect(
      peers.told.messaging.filter(({ organization_id, version }) => organization_id === id && version > 1),
    ).toEqual([])
  })
})

describe('an update', () => {
  beforeEach(async () => {
    peers = await startPeers(it.app)
  })
  afterEach(() => peers.stop())

  test('an unknown organization is not found', async () => {
    await expect(ask(it.app, updateOrganization, { organization_id: newId('org'), name: 'x' })).rejects.toMatchObject({
      failure: 'resource_not_found',
      param: 'organization_id',
    })
  })

  test('a lapsed subscription refuses sends of every number, at both services before the answer and by event', async () => {
    const { id, accounts } = await organizationWithNumbers()
    await ask(it.app, updateOrganization, { organization_id: id, subscription: 'lapsed' })
    for (const states of [peers.told.messaging, peers.told.directory]) {
      expect(byAccount(states)).toEqual(accounts)
      for (const state of states) expect(state).toMatchObject({ refusal: 'subscription_inactive', version: 2 })
    }
    const events = (await eventsOf(id)).slice(-2).map(({ state }) => state)
    expect(events).toEqual(peers.told.messaging.toSorted((a, b) => (a.account_id < b.account_id ? -1 : 1)))
  })

  test('settings reach the numbers', async () => {
    const { id, accounts } = await organizationWithNumbers()
    await ask(it.app, updateOrganization, { organization_id: id, settings: { window_check: 'upstream' } })
    expect(byAccount(peers.told.directory)).toEqual(accounts)
    for (const { settings } of peers.told.directory) expect(settings.window_check).toBe('upstream')
  })

  test('how long messages are kept is told as an event, for which nobody waits', async () => {
    const { id, accounts } = await organizationWithNumbers()
    await ask(it.app, updateOrganization, { organization_id: id, retention_days: 1 })
    const events = (await eventsOf(id)).slice(-2).map(({ state }) => state)
    expect(events.map((state) => state['account_id'])).toEqual(accounts)
    for (const state of events) expect(state).toMatchObject({ retention_days: 1, version: 2 })
    expect(peers.told.messaging).toEqual([])
  })

  test('how long messages are kept is told of a detached number too, whose messages are still there', async () => {
    const { id, accounts } = await organizationWithNumbers()
    await it.app.sql`update accounts set attached = false, status = 'disconnected' where organization_id = ${id}`
    const settings = { ordering: 'relaxed' } as const
    await ask(it.app, updateOrganization, { organization_id: id, retention_days: null, settings })
    await ask(it.app, updateOrganization, { organization_id: id, retention_days: 365 })
    const events = (await eventsOf(id)).slice(-2).map(({ state }) => state)
    expect(events.map((state) => state['account_id'])).toEqual(accounts)
    for (const state of events) expect(state).toMatchObject({ attached: false, retention_days: 365, settings })
    expect(peers.told.messaging).toEqual([])
  })

  test('each of very many numbers is told of, though no statement changes or tells of more than a thousand', async () => {
    const { id, accounts } = await organizationWithNumbers()
    await it.app.sql`
      insert into accounts (organization_id, id, phone_number_id, business_account_id, team_id, status, sealed_token)
      select organization_id, 'acc_' || lpad(n::text, 26, '0'), '900000' || n, business_account_id, team_id, status, sealed_token
      from accounts, generate_series(1, 2100) n where organization_id = ${id} and id = ${accounts[0] ?? ''}
    `
    await refusingManyRows(it.app.sql, ['accounts', 'outbox'], () =>
      ask(it.app, updateOrganization, { organization_id: id, retention_days: 1 }),
    )
    const changed = (await eventsOf(id)).filter(({ state }) => state['retention_days'] === 1)
    expect(new Set(changed.map(({ state }) => state['account_id'])).size).toBe(2_102)
    for (const { state } of changed) expect(state['version']).toBe(2)
  })

  test('numbers of another organization stay as they are', async () => {
    const { id } = await organizationWithNumbers()
    const other = await organizationWithNumbers()
    await ask(it.app, updateOrganization, { organization_id: id, subscription: 'lapsed' })
    expect(peers.told.messaging.filter(({ organization_id }) => organization_id === other.id)).toEqual([])
  })

  test('while a peer is away it is unavailable; the same call again tells it, with the same version and no second event', async () => {
    const { id, accounts } = await organizationWithNumbers()
    await peers.stop()
    const change = { organization_id: id, subscription: 'lapsed' } as const
    const unavailable = {
      failure: 'service_unavailable',
      message: expect.stringContaining('The change is saved') as string,
    }
    await expect(ask(it.app, updateOrganization, change)).rejects.toMatchObject(unavailable)
    peers = await startPeers(it.app)
    const events = await eventsOf(id)
    await ask(it.app, updateOrganization, change)
    expect(byAccount(peers.told.messaging)).toEqual(accounts)
    for (const state of peers.told.messaging) expect(state.version).toBe(2)
    expect(await eventsOf(id)).toEqual(events)
  })

  test('who would have given up before all numbers go by it is told in time that it is saved', async () => {
    const { id } = await organizationWithNumbers()
    const caller = { ...systemCaller(), deadline: performance.now() + 900 }
    const change = { organization_id: id, subscription: 'lapsed' } as const
    await expect(ask(it.app, updateOrganization, change, { caller })).rejects.toMatchObject({
      failure: 'service_unavailable',
      message: expect.stringContaining('The change is saved') as string,
    })
    expect((await eventsOf(id)).at(-1)?.state).toMatchObject({ refusal: 'subscription_inactive' })
  })

  test('a change that waited for another one keeps it', async () => {
    const { id } = await organizationWithNumbers()
    const { promise: held, resolve: release } = Promise.withResolvers<void>()
    const { promise: begun, resolve: noteBegun } = Promise.withResolvers<void>()
    const other = it.app.sql.begin(async (tx) => {
      await tx`update organizations set settings = '{"ordering":"relaxed"}' where id = ${id}`
      noteBegun()
      await held
    })
    await begun
    const change = ask(it.app, updateOrganization, { organization_id: id, subscription: 'lapsed' })
    await untilSomebodyWaits(it.app.sql)
    release()
    await other
    expect((await change).settings.ordering).toBe('relaxed')
    for (const state of peers.told.messaging) {
      expect(state).toMatchObject({ refusal: 'subscription_inactive', settings: { ordering: 'relaxed' } })
    }
  })
})
