import { newId } from '@app/shared/values/ids.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { order, type TestTemplates, testTemplates } from '../testing/templates.ts'

let it: TestTemplates
beforeAll(async () => {
  it = await testTemplates()
  for (const name of ['a', 'b', 'c', 'd', 'e']) await it.create(order(name))
  await it.create(order('a', { language: 'de' }))
  await it.app.sql`update templates set status = 'approved' where name in ('a', 'b')`
  await it.app.sql`update templates set status = 'rejected' where name = 'c'`
})
afterAll(() => it.close())

const names = async (query: object) => (await it.list(query)).data.map(({ name }) => name)

test('approved ones are listed unless another status is asked for, newest first', async () => {
  expect(await names({})).toEqual(['a', 'b', 'a'])
  expect(await names({ status: 'pending' })).toEqual(['e', 'd'])
  expect(await names({ status: 'rejected' })).toEqual(['c'])
  expect(await names({ status: 'all' })).toEqual(['a', 'e', 'd', 'c', 'b', 'a'])
  expect(await names({ status: 'all', language: 'de' })).toEqual(['a'])
})

test('pages hold every template once, and a cursor holds for its filters alone', async () => {
  const seen: string[] = []
  let cursor: string | null = null
  do {
    const page = await it.list({ status: 'all', limit: '4', ...(cursor !== null && { cursor }) })
    seen.push(...page.data.map(({ name }) => name))
    cursor = page.next_cursor
  } while (cursor !== null)
  expect(seen).toEqual(['a', 'e', 'd', 'c', 'b', 'a'])
  const { next_cursor: other } = await it.list({ status: 'all', limit: '4' })
  await expect(it.list({ cursor: other })).rejects.toMatchObject({ failure: 'invalid_cursor' })
})

test('without a language, the newest of a name is read', async () => {
  expect(await it.get('a')).toMatchObject({ language: 'de' })
  expect(await it.get('a', { language: 'en_US' })).toMatchObject({ language: 'en_US' })
  await expect(it.get('a', { language: 'fr' })).rejects.toMatchObject({ failure: 'resource_not_found' })
})

test('any 2 to 15 characters are a language to look for, shorter and longer ones are none', async () => {
  for (const language of ['aa', 'a'.repeat(15), '12', 'en.US', 'ü'.repeat(15)]) {
    expect(await names({ status: 'all', language })).toEqual([])
    await expect(it.get('a', { language })).rejects.toMatchObject({ failure: 'resource_not_found' })
    await expect(it.edit('a', {}, { language })).rejects.toMatchObject({ failure: 'resource_not_found' })
  }
  const refused = { name: 'ZodError' }
  for (const language of ['', 'a', 'a'.repeat(16), 'd\0']) {
    await expect(it.list({ language })).rejects.toMatchObject(refused)
    await expect(it.get('a', { language })).rejects.toMatchObject(refused)
    await expect(it.edit('a', {}, { language })).rejects.toMatchObject(refused)
  }
})

test('every number of the business account has its templates, numbers of another one, and other organizations, none', async () => {
  const [sender] = await it.app.sql`select * from senders`
  const add = (number: string, changes: object) =>
    it.app.sql`insert into senders ${it.app.sql({ ...sender, phoneNumberId: number, ...changes })}`
  await add('200000001', { phoneNumber: '+15550002222' })
  await add('200000002', { businessAccountId: '77' })
  const organizationId = newId('org')
  await add('200000003', { organizationId, attached: false })
  const shown = await it.get('b', {}, { phone: '200000001' })
  expect(shown).toMatchObject({ id: (await it.get('b')).id, chat_account: { phone_number: '+15550002222' } })
  for (const options of [{ phone: '200000002' }, { phone: '200000003', organizationId }]) {
    expect((await it.list({ status: 'all' }, options)).data).toEqual([])
    await expect(it.get('b', {}, options)).rejects.toMatchObject({ failure: 'resource_not_found' })
  }
  const nobodys = { phone: '200000003' }
  await expect(it.list({}, nobodys)).rejects.toMatchObject({ failure: 'resource_not_found' })
})
