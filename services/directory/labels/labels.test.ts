import { createLabel } from '@app/shared/contracts/labels.ts'
import { newId } from '@app/shared/values/ids.ts'
import { untilSomebodyWaits } from '@app/test/lock-waits.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { testDirectory, type TestDirectory } from '../testing/app.ts'
import { managing, tellTeam } from '../testing/managing.ts'

let directory: TestDirectory
beforeAll(async () => {
  directory = await testDirectory()
})
afterAll(() => directory.drop())

const gone = { failure: 'resource_not_found' }
const taken = { failure: 'label_already_exists', param: 'name' }

async function newTeam(organizationId = newId('org')) {
  const teamId = await tellTeam(directory, organizationId)
  return { teamId, ...managing(directory.app, { organizationId, phoneNumberId: '123456', teamId }) }
}

test('a label is made, read, changed, and gone', async () => {
  const team = await newTeam()
  const { status, data } = await team.createLabel({ name: 'VIP', team_id: team.teamId })
  expect([status, data]).toMatchObject([201, { object: 'label', name: 'VIP', color: 'gray', team_id: team.teamId }])
  expect(await team.getLabel(data.id)).toEqual(data)
  expect(await team.updateLabel(data.id, {})).toEqual(data)
  expect(await team.updateLabel(data.id, { name: 'VIP', color: 'gray' })).toEqual(data)
  const changed = await team.updateLabel(data.id, { color: 'pink' })
  expect(changed).toEqual({ ...data, color: 'pink', updated_at: changed.updated_at })
  expect(changed.updated_at > data.updated_at).toBe(true)
  expect((await team.deleteLabel(data.id)).data).toEqual({ id: data.id, object: 'label', deleted: true })
  for (const ask of [
    () => team.getLabel(data.id),
    () => team.updateLabel(data.id, { color: 'red' }),
    () => team.deleteLabel(data.id),
  ]) {
    await expect(ask()).rejects.toMatchObject(gone)
  }
})

test('a repeated request is answered as before, whatever teams there are by now', async () => {
  const team = await newTeam()
  const create = () => team.createLabel({ name: 'VIP', team_id: team.teamId }, 'key')
  const { data } = await create()
  await directory.sql`delete from teams where id = ${team.teamId}`
  expect(await create()).toMatchObject({ replayed: true, data })
})

test('of two changes at the same time the one made last bears the later time', async () => {
  const team = await newTeam()
  const { id } = await team.label('VIP')
  let waiting: ReturnType<typeof team.updateLabel> | undefined
  const earlier = await directory.sql.begin(async (tx) => {
    await tx`select id from labels where id = ${id} for no key update`
    waiting = team.updateLabel(id, { color: 'pink' })
    await untilSomebodyWaits(directory.sql)
    const [row] = await tx<[{ updatedAt: Date }]>`
      update labels set color = 'blue', updated_at = clock_timestamp() where id = ${id} returning updated_at
    `
    return row.updatedAt
  })
  const { updated_at: later } = (await waiting) ?? { updated_at: '' }
  expect(Date.parse(later)).toBeGreaterThanOrEqual(earlier.getTime())
})

test('names differ in more than case within a team, not between teams, and are free after a deletion', async () => {
  const team = await newTeam()
  const second = await newTeam(team.organizationId)
  const label = await team.label('Öl-Straße')
  const other = await team.label('Other')
  await expect(team.label('ÖL-STRAßE')).rejects.toMatchObject(taken)
  await expect(team.updateLabel(other.id, { name: 'öl-straße' })).rejects.toMatchObject(taken)
  expect((await team.updateLabel(label.id, { name: 'ÖL-STRAßE' })).name).toBe('ÖL-STRAßE')
  await second.label('Öl-Straße')
  await team.deleteLabel(label.id)
  await team.label('Öl-Straße')
})

test('of many parallel calls with one name one makes it; with one key all get its answer', async () => {
  const team = await newTeam()
  const rivals = await Promise.allSettled(Array.from({ length: 20 }, () => team.label('VIP')))
  expect(rivals.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  const body = { name: 'Paid', team_id: team.teamId }
  const same = await Promise.all(Array.from({ length: 20 }, () => team.createLabel(body, 'key')))
  expect(new Set(same.map(({ data }) => data.id)).size).toBe(1)
})

test('pages go newest first to the end, of all teams or of one, without what is deleted', async () => {
  const team = await newTeam()
  const second = await newTeam(team.organizationId)
  const made = []
  for (let n = 0; n < 7; n++) made.unshift((await (n % 2 ? second : team).label(`n${n}`)).id)
  const all = async (team_id?: string) => {
    const ids: string[] = []
    let cursor: string | null = null
    do {
      const page: Awaited<ReturnType<typeof team.listLabels>> = await team.listLabels({
        limit: '2',
        ...(team_id && { team_id }),
        ...(cursor !== null && { cursor }),
      })
      ids.push(...page.data.map(({ id }) => id))
      cursor = page.next_cursor
    } while (cursor !== null)
    return ids
  }
  expect(await all()).toEqual(made)
  expect(await all(second.teamId)).toEqual(made.filter((_, n) => n % 2 === 1))
  expect(await all(newId('team'))).toEqual([])
  await team.deleteLabel(made[0] ?? '')
  expect(await all()).toEqual(made.slice(1))
})

test("nobody sees another organization's label", async () => {
  const team = await newTeam()
  const stranger = await newTeam()
  const { id } = await team.label('VIP')
  expect((await stranger.listLabels()).data).toEqual([])
  expect((await stranger.listLabels({ team_id: team.teamId })).data).toEqual([])
  for (const ask of [
    () => stranger.getLabel(id),
    () => stranger.updateLabel(id, { color: 'red' }),
    () => stranger.deleteLabel(id),
  ]) {
    await expect(ask()).rejects.toMatchObject(gone)
  }
})

test.each([
  [{}, 'name'],
  [{ name: '' }, 'name'],
  [{ name: '𝒳'.repeat(51) }, 'name'],
  [{ name: 'VIP', color: 'black' }, 'color'],
  [{ name: 'VIP', team_id: 'team_1' }, 'team_id'],
])('refuses %j', (body, param) => {
  expect(createLabel.body.safeParse(body).error?.issues[0]?.path).toEqual([param])
})
