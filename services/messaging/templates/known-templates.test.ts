import { newId } from '@app/shared/values/ids.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { order, type TestTemplates, testTemplates } from '../testing/templates.ts'

let it: TestTemplates
beforeAll(async () => {
  it = await testTemplates()
})
afterAll(() => it.close())

test('a send has the template of its own organization, and of the business account of its number', async () => {
  const { sql, templates } = it.app
  await it.create(order('a'))
  const [template] = await sql<{ id: string }[]>`select id from templates`
  const [sender] = await sql<{ organizationId: string; phoneNumberId: string; businessAccountId: string }[]>`
    select * from senders
  `
  if (!sender || !template) throw new Error('nothing to look up')
  const { id } = template
  const { organizationId, phoneNumberId: phone, businessAccountId } = sender
  const other = newId('org')
  const second = '200000002'
  const away = { ...sender, businessAccountId: '77', attached: false }
  await sql`insert into senders ${sql({ ...away, organizationId: other })}`
  await sql`insert into senders ${sql({ ...away, phoneNumberId: second })}`
  const copyFor = async (organization: string) => {
    const copy = newId('tmpl')
    await sql`
      insert into templates (organization_id, business_account_id, id, name, language, status, upstream_status, category,
        components, parameter_format, known_at, created_at, updated_at)
      select ${organization}, '77', ${copy}, name, language, status, upstream_status, category, components,
        parameter_format, known_at, created_at, updated_at
      from templates where id = ${id}
    `
    return copy
  }
  const [theirs, ours] = [await copyFor(other), await copyFor(organizationId)]
  const find = (organization: string, number: string) =>
    templates.find({ organizationId: organization, phoneNumberId: number, name: 'a', language: 'en_US' })
  const places = [find(organizationId, phone), find(other, phone), find(organizationId, second), find(other, second)]
  expect(await Promise.all(places)).toMatchObject([
    { businessAccountId, id },
    { businessAccountId: '77', id: theirs },
    { businessAccountId: '77', id: ours },
    { businessAccountId: null, id: null },
  ])
})
