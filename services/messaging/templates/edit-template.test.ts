import { until } from '@app/test/until.ts'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { refuse, unheard } from '../testing/template-platform.ts'
import { order, type TestTemplates, testTemplates } from '../testing/templates.ts'

let it: TestTemplates
beforeAll(async () => {
  it = await testTemplates()
})
afterAll(() => it.close())
beforeEach(async () => {
  it.platform.reset()
  await it.app.sql`delete from templates`
})

const components = [{ type: 'BODY', text: 'New {{1}} text.', example: { body_text: [['a']] } }]

async function approved(name: string, more: object = {}) {
  await it.create(order(name, more))
  for (const one of it.platform.templates) one.status = 'APPROVED'
  await it.app.sql`update templates set status = 'approved', upstream_status = 'APPROVED' where name = ${name}`
}

test('an edit replaces the components at the platform and here, and is pending again', async () => {
  await approved('edited')
  const { data } = await it.edit('edited', { components })
  expect(data).toMatchObject({ status: 'pending', content: 'New {{1}} text.', variables: ['1'], components })
  const call = it.platform.seen.at(-1)
  expect(call?.path).toBe(`/v23.0/${data.provider_template_id}`)
  expect(JSON.parse(String(call?.body))).toEqual({ components })
  expect(await it.get('edited')).toEqual(data)
})

test('the category alone can be edited', async () => {
  await approved('recategorised')
  const { data } = await it.edit('recategorised', { category: 'MARKETING' })
  expect(data).toMatchObject({ status: 'pending', category: 'MARKETING', content: 'Hi {{1}}, order {{2}} shipped.' })
  expect(JSON.parse(String(it.platform.seen.at(-1)?.body))).toEqual({ category: 'MARKETING' })
})

test('a pending template cannot be edited; nothing to change changes nothing', async () => {
  await it.create(order('pending'))
  await expect(it.edit('pending', { components })).rejects.toMatchObject({
    failure: 'template_not_editable',
    status: 409,
  })
  const before = await it.get('pending')
  expect((await it.edit('pending', {})).data).toEqual(before)
  await expect(it.edit('absent', { components })).rejects.toMatchObject({ failure: 'resource_not_found' })
})

test('a name in several languages needs the language', async () => {
  await approved('both')
  await approved('both', { language: 'de' })
  await expect(it.edit('both', { components })).rejects.toMatchObject({
    failure: 'invalid_field_value',
    param: 'language',
  })
  expect((await it.edit('both', { components }, { language: 'de' })).data).toMatchObject({
    language: 'de',
    status: 'pending',
  })
  expect(await it.get('both', { language: 'en_US' })).toMatchObject({ status: 'approved' })
})

test('what breaks a rule is not sent; what the platform refuses changes nothing here', async () => {
  await approved('kept')
  const before = await it.get('kept')
  const calls = it.platform.seen.length
  await expect(it.edit('kept', { components: [{ type: 'BODY', text: '{{1}}' }] })).rejects.toMatchObject({
    param: 'components[0].text',
  })
  expect(it.platform.seen).toHaveLength(calls)
  it.platform.once(refuse(100, 2388072, { sentence: 'Edited too often.' }))
  await expect(it.edit('kept', { components })).rejects.toMatchObject({
    status: 400,
    param: 'components[0]',
    message: expect.stringContaining('Edited too often.'),
  })
  it.platform.once(refuse(2, undefined, { status: 503 }))
  await expect(it.edit('kept', { components })).rejects.toMatchObject({ failure: 'upstream_unavailable', status: 502 })
  expect(await it.get('kept')).toEqual(before)
})

test('an edit whose answer is lost is a 502, and what the platform made of it is shown', async () => {
  await approved('lost')
  it.platform.once((request, response) => {
    it.platform.answer(request, unheard)
    response.destroy()
  })
  await expect(it.edit('lost', { components })).rejects.toMatchObject({ failure: 'upstream_unavailable', status: 502 })
  expect(await it.get('lost')).toMatchObject({ status: 'pending', content: 'New {{1}} text.' })
})

test('a template that was edited elsewhere is shown as it is when the platform refuses another edit', async () => {
  await approved('elsewhere')
  Object.assign(it.platform.templates[0] ?? {}, { status: 'PENDING', components })
  it.platform.once(refuse(100, 2388025))
  await expect(it.edit('elsewhere', { category: 'MARKETING' })).rejects.toMatchObject({ status: 400 })
  expect(await it.get('elsewhere')).toMatchObject({ status: 'pending', content: 'New {{1}} text.' })
})

test('an approval that comes before the edit is recorded stands', async () => {
  await approved('fast')
  it.platform.once(async (request, response) => {
    await it.callbacks.change('message_template_status_update', {
      event: 'REJECTED',
      message_template_name: 'fast',
      message_template_language: 'en_US',
    })
    await until(async () => expect(await it.get('fast')).toMatchObject({ status: 'rejected' }))
    it.platform.answer(request, response)
  })
  expect((await it.edit('fast', { components })).data).toMatchObject({ status: 'rejected', content: 'New {{1}} text.' })
})
