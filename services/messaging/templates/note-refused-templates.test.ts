import { afterAll, beforeAll, expect, test } from 'vitest'
import { organizationId } from '../testing/app.ts'
import { businessAccountId } from '../testing/callbacks.ts'
import { order, type TestTemplates, testTemplates } from '../testing/templates.ts'
import { noteRefusedTemplates } from './note-refused-templates.ts'

let it: TestTemplates
beforeAll(async () => {
  it = await testTemplates()
})
afterAll(() => it.close())

test('a refusal tells of a pause only when nothing was heard of the template since its attempt began', async () => {
  const name = 'reinstated'
  await it.create(order(name))
  await it.app.sql`
    update templates set status = 'approved', upstream_status = 'REINSTATED', known_at = now() where name = ${name}
  `
  const refusedAt = (begunAt: Date) =>
    it.app.sql.begin((tx) =>
      noteRefusedTemplates(tx, [{ organizationId, businessAccountId, name, language: 'en_US', code: 132015, begunAt }]),
    )
  const word = () => it.app.sql`select upstream_status from templates where name = ${name}`
  await refusedAt(new Date(Date.now() - 5_000))
  expect(await word()).toEqual([{ upstreamStatus: 'REINSTATED' }])
  await refusedAt(new Date(Date.now() + 5_000))
  expect(await word()).toEqual([{ upstreamStatus: 'PAUSED' }])
})
