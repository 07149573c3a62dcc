import { call, systemCaller } from '@app/shared/bus/ask.ts'
import { createLabel } from '@app/shared/contracts/labels.ts'
import { listTeams, memberChanged, teamChanged } from '@app/shared/contracts/platform.ts'
import { emit } from '@app/shared/events/events.ts'
import { newId } from '@app/shared/values/ids.ts'
import { startLoop } from '@app/shared/work/loop.ts'
import { type Relay, startRelay } from '@app/shared/events/relay.ts'
import { serve, type Serving } from '@app/shared/bus/rpc.ts'
import { testService, type TestService } from '@app/test/service.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type App, createApp } from '../app.ts'
import { chooseTeam } from './choose-team.ts'
import { consumeMembers, consumeTeams } from './consume-teams.ts'

let service: TestService
let relay: Relay
let app: App
let platform: Serving
/** What platform has, and how often it was asked. */
const teams = new Map<string, { id: string; name: string }[]>()
let asked = 0

beforeAll(async () => {
  service = await testService('directory')
  relay = startRelay(service)
  const detaching = startLoop(service.log, 'none', () => Promise.resolve(Infinity))
  app = createApp(service, { relay, detaching, cursorKeys: { current: 'k', byId: new Map() }, tellChanged() {} })
  platform = await serve(
    { ...service, name: 'platform' },
    { listTeams },
    {
      listTeams: (_app, _input, { organizationId }) => {
        asked++
        return Promise.resolve({ teams: teams.get(organizationId) ?? [] })
      },
    },
  )
})
afterAll(async () => {
  await platform.stop()
  await relay.stop()
  await service.close()
})

function newOrganization(count: number) {
  const organizationId = newId('org')
  const ids = Array.from({ length: count }, () => newId('team'))
  teams.set(
    organizationId,
    ids.map((id) => ({ id, name: 'Team' })),
  )
  asked = 0
  return { caller: systemCaller(organizationId), ids }
}

const refusal = { failure: 'invalid_field_value', param: 'team_id' }

test('the only team need not be named', async () => {
  const { caller, ids } = newOrganization(1)
  expect(await chooseTeam(app, undefined, caller)).toBe(ids[0])
})

test('of several teams one has to be named, and a stranger is none of them', async () => {
  const { caller, ids } = newOrganization(2)
  await expect(chooseTeam(app, undefined, caller)).rejects.toMatchObject(refusal)
  await expect(chooseTeam(app, newId('team'), caller)).rejects.toMatchObject(refusal)
  for (const id of ids) expect(await chooseTeam(app, id, caller)).toBe(id)
})

test('a team that was told of is known without asking, a new one by asking', async () => {
  const { caller, ids } = newOrganization(2)
  const [told = '', untold = ''] = ids
  const { organizationId } = caller
  const consuming = [consumeTeams(app), consumeMembers(app)]
  const member = { id: newId('usr'), team_id: told, name: 'Ana', email: 'ana@example.com' }
  await app.sql.begin(async (tx) => {
    await emit(tx, teamChanged, { team: { id: told, name: 'Later' } }, { organizationId })
    const earlier = new Date(Date.now() - 60_000)
    await emit(tx, teamChanged, { team: { id: told, name: 'Earlier' } }, { organizationId, createdAt: earlier })
    await emit(tx, memberChanged, { member }, { organizationId })
    await emit(tx, memberChanged, { member: { ...member, name: 'Anna' } }, { organizationId, createdAt: earlier })
  })
  relay.wake()
  await expect.poll(() => app.sql`select event_id from handled_events`).toHaveLength(4)
  expect(await app.sql`select name, email, team_id from members where id = ${member.id}`).toEqual([
    { name: 'Ana', email: 'ana@example.com', teamId: told },
  ])
  expect(await app.sql`select name from teams where id = ${told}`).toEqual([{ name: 'Later' }])
  expect(await chooseTeam(app, told, caller)).toBe(told)
  expect(asked).toBe(0)
  expect(await chooseTeam(app, untold, caller)).toBe(untold)
  expect(asked).toBe(1)
  await expect(chooseTeam(app, undefined, caller)).rejects.toMatchObject(refusal)
  await Promise.all(consuming.map(({ stop }) => stop()))
})

test('without platform nothing is made that it would have to allow', async () => {
  const { caller } = newOrganization(1)
  await platform.stop()
  await expect(chooseTeam(app, undefined, caller)).rejects.toMatchObject({ failure: 'service_unavailable' })
  await expect(call(app, createLabel, { body: { name: 'VIP' } }, caller)).rejects.toMatchObject({
    failure: 'service_unavailable',
  })
})
