import { systemCaller } from '@app/shared/bus/ask.ts'
import { newId } from '@app/shared/values/ids.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { newNumber, testDirectory, type TestDirectory } from '../testing/app.ts'
import { managing, tellTeam } from '../testing/managing.ts'
import { explainLabel } from './explain-label.ts'

let directory: TestDirectory
beforeAll(async () => {
  directory = await testDirectory()
})
afterAll(() => directory.drop())

async function historyOf(id: string) {
  const answer = await explainLabel(directory.app, { params: {}, query: {}, body: { id } }, systemCaller())
  if ('whole' in answer) throw new Error('an explanation is answered by its handler')
  return answer.history
}

test('a label tells what it is attached to, and after its deletion what is left of that', async () => {
  const number = await newNumber(directory.app)
  const { organizationId, state } = number
  await tellTeam(directory, organizationId, state.team_id)
  const managed = managing(directory.app, { ...number, teamId: state.team_id })
  const label = await managed.label('Very important')
  const told = async () => (await historyOf(label.id)).map(({ what }) => what)
  expect(await told()).toEqual(['was made', 'is there, and is attached to 0 contacts and 0 conversations'])
  const [contact = ''] = await managed.many(1)
  await managed.attach(contact, label.id)
  await managed.updateLabel(label.id, { color: 'pink' })
  const history = await historyOf(label.id)
  expect(history.map(({ what }) => what)).toEqual([
    'was made',
    'was changed last',
    'is there, and is attached to 1 contact and 0 conversations',
  ])
  expect(history[0]?.details).toEqual({ organization_id: organizationId, team_id: state.team_id })
  expect(JSON.stringify(history)).not.toContain('important')
  await managed.deleteLabel(label.id)
  expect(await told()).toEqual([
    'was made',
    'was deleted',
    'is deleted, and nobody sees it; it is still to be taken off 1 contact and 0 conversations',
  ])
  await directory.sql`delete from contact_labels where label_id = ${label.id}`
  expect((await told()).at(-1)).toBe('is deleted: its row goes next')
  await expect(historyOf(newId('lbl'))).rejects.toThrow('No such resource')
})
