import { newId } from '@app/shared/values/ids.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ask, newOrganization, startTestApp, type TestApp } from '../testing/app.ts'
import { listOrganizations } from './list-organizations.ts'

let it: TestApp
beforeAll(async () => {
  it = await startTestApp()
})
afterAll(() => it.close())

const list = async (body: { search?: string; after?: string } = {}) => {
  const { organizations, next_after } = await ask(it.app, listOrganizations, body)
  return { ids: organizations.map(({ id }) => id), next_after }
}

test('lists organizations, newest first, or those whose name has a piece', async () => {
  const acme = await newOrganization(it.app, { name: 'Acme 100% Ltd' })
  const bruno = await newOrganization(it.app, { name: 'Bakery Bruno' })
  expect(await list()).toEqual({ ids: [bruno, acme].toSorted().toReversed(), next_after: null })
  expect(await list({ search: 'bAkery' })).toEqual({ ids: [bruno], next_after: null })
  expect(await list({ search: '100%' })).toEqual({ ids: [acme], next_after: null })
  expect(await list({ search: '10_%' })).toEqual({ ids: [], next_after: null })
})

test('goes on where a page ended', async () => {
  await it.app.sql`
    insert into organizations (id, name, tier, features, subscription)
    select 'org_00000000000000000000' || to_char(n, 'FM000000'), 'Many', 'starter', '{}', 'active'
    from generate_series(1, 1001) n
  `
  const first = await list({ search: 'Many' })
  expect(first.ids).toHaveLength(1000)
  expect(first.next_after).toBe(first.ids.at(-1))
  const second = await list({ search: 'Many', after: first.next_after ?? newId('org') })
  expect(second).toEqual({ ids: ['org_00000000000000000000000001'], next_after: null })
})
