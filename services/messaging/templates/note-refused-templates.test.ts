import { untilSomebodyWaits } from '@app/test/lock-waits.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { organizationId } from '../testing/app.ts'
import { businessAccountId } from '../testing/callbacks.ts'
import { copyElsewhere, order, type TestTemplates, testTemplates } from '../testing/templates.ts'
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

test('two that note the same templates take them in one order, whichever was refused first', async () => {
  const { sql } = it.app
  const names = ['noted_a', 'noted_b']
  for (const name of names) await it.create(order(name))
  await sql`update templates set status = 'approved', upstream_status = 'APPROVED' where name = any(${names})`
  const begunAt = new Date(Date.now() + 5_000)
  const refused = (name: string) => ({
    organizationId,
    businessAccountId,
    name,
    language: 'en_US',
    code: 132015,
    begunAt,
  })
  const { noting, free } = await sql.begin(async (tx) => {
    await noteRefusedTemplates(tx, [refused('noted_a')])
    const noted = sql.begin((other) => noteRefusedTemplates(other, [refused('noted_b'), refused('noted_a')]))
    await untilSomebodyWaits(sql)
    const others = await sql`select name from templates where name = any(${names}) for update skip locked`
    return { noting: noted, free: others }
  })
  await noting
  expect(free).toEqual([{ name: 'noted_b' }])
  const words = await sql`select distinct upstream_status from templates where name = any(${names})`
  expect(words).toEqual([{ upstreamStatus: 'PAUSED' }])
})

test('a refusal tells of the template of its own organization, business account, name and language alone', async () => {
  const { sql } = it.app
  for (const language of ['en_US', 'de']) await it.create(order('refused', { language }))
  await it.create(order('other'))
  await sql`update templates set status = 'approved', upstream_status = 'APPROVED'`
  const elsewhere = await copyElsewhere(it)
  const before = await elsewhere()
  const refused = { organizationId, businessAccountId, name: 'refused', language: 'de', code: 132016 }
  await sql.begin((tx) => noteRefusedTemplates(tx, [{ ...refused, begunAt: new Date(Date.now() + 5_000) }]))
  const changed = sql`
    select name, language, status from templates where upstream_status = 'DISABLED' and organization_id = ${organizationId}
  `
  expect(await changed).toEqual([{ name: 'refused', language: 'de', status: 'rejected' }])
  expect(await elsewhere()).toEqual(before)
})
