import { until } from '@app/test/until.ts'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { organizationId } from '../testing/app.ts'
import { businessAccountId } from '../testing/callbacks.ts'
import { json, refuse, unheard } from '../testing/template-platform.ts'
import { copyElsewhere, order, type TestTemplates, testTemplates } from '../testing/templates.ts'
import { noteRefusedTemplates } from './note-refused-templates.ts'

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

test.each(['PENDING', 'DISABLED', 'VANISHED'])(
  'a template that is %s cannot be edited, which says why',
  async (word) => {
    await approved('fixed')
    await it.app.sql`update templates set upstream_status = ${word}`
    await expect(it.edit('fixed', { components })).rejects.toMatchObject({
      failure: 'template_not_editable',
      message: `A template that is ${word} cannot be edited.`,
    })
  },
)

test.each(['REJECTED', 'PAUSED', 'FLAGGED'])('a template that is %s can be edited', async (word) => {
  await approved('fixed')
  await it.app.sql`update templates set upstream_status = ${word}`
  expect((await it.edit('fixed', { components })).data).toMatchObject({ status: 'pending', components })
})

test('a template whose id at the platform is not known cannot be edited, and a creation that was given up is not there', async () => {
  await approved('nameless')
  await it.app.sql`update templates set provider_template_id = null`
  await expect(it.edit('nameless', { components })).rejects.toMatchObject({ failure: 'template_not_editable' })
  await it.app.sql`update templates set held_until = now() - interval '1 s'`
  await expect(it.edit('nameless', { components })).rejects.toMatchObject({ failure: 'resource_not_found' })
})

test('a template of the name elsewhere neither is edited nor makes the language needed', async () => {
  await approved('here')
  const elsewhere = await copyElsewhere(it)
  const before = await elsewhere()
  expect((await it.edit('here', { components })).data).toMatchObject({ content: 'New {{1}} text.' })
  expect(await elsewhere()).toEqual(before)
})

test('a template for codes is edited by its own rules', async () => {
  const codes = [{ type: 'BODY', add_security_recommendation: true }]
  await approved('codes', { category: 'AUTHENTICATION', components: codes })
  expect((await it.edit('codes', { components: [{ type: 'BODY' }] })).data).toMatchObject({ content: '{{1}}' })
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

test('a template is pending after its edit, whatever is told of its quality meanwhile', async () => {
  await approved('scored')
  it.platform.once(async (request, response) => {
    await it.callbacks.change('message_template_quality_update', {
      new_quality_score: 'YELLOW',
      message_template_name: 'scored',
      message_template_language: 'en_US',
    })
    await until(async () =>
      expect(await it.app.sql`select quality from templates`).toContainEqual({ quality: 'YELLOW' }),
    )
    it.platform.answer(request, response)
  })
  expect((await it.edit('scored', { components })).data).toMatchObject({ status: 'pending' })
})

test('a pause of which a refused send tells while a template is edited stands', async () => {
  await approved('refused')
  it.platform.once(async (request, response) => {
    const refused = { organizationId, businessAccountId, name: 'refused', language: 'en_US', code: 132015 }
    await it.app.sql.begin((tx) => noteRefusedTemplates(tx, [{ ...refused, begunAt: new Date() }]))
    it.platform.answer(request, response)
  })
  await it.edit('refused', { components })
  expect(await it.app.sql`select upstream_status from templates`).toEqual([{ upstreamStatus: 'PAUSED' }])
})

test('what a sync brings that asked before an edit does not undo it', async () => {
  await approved('newer')
  it.platform.once(async (_request, response) => {
    const stale = structuredClone(it.platform.templates)
    await it.edit('newer', { components })
    json(response, { data: stale })
  })
  await it.sync()
  expect(await it.get('newer')).toMatchObject({ status: 'pending', content: 'New {{1}} text.' })
})

test('what the platform told before an edit, and comes late, does not undo it', async () => {
  await approved('late')
  await it.app.sql`update templates set status_at = '-infinity'`
  const time = Math.floor(Date.now() / 1000) - 60
  const { data } = await it.edit('late', { components, category: 'MARKETING' })
  const told = {
    message_template_status_update: { event: 'REJECTED' },
    template_category_update: { new_category: 'UTILITY' },
    message_template_components_update: { message_template_element: 'Older.' },
  }
  const late = { message_template_name: 'late', message_template_language: 'en_US' }
  const changes = Object.entries(told).map(([field, value]) => ({ field, value: { ...late, ...value } }))
  await it.callbacks.changesAt(time, ...changes)
  await until(async () => expect(await it.app.sql`select 1 from callback_items`).toHaveLength(0))
  expect(await it.get('late')).toMatchObject({ status: 'pending', category: 'MARKETING', content: data.content })
})

test('what is told while a template is edited is not undone by what was told before that and comes after the edit', async () => {
  await approved('between')
  const named = { message_template_name: 'between', message_template_language: 'en_US' }
  const tell = (time: number, event: string, new_category: string, message_template_element: string) =>
    it.callbacks.changesAt(
      time,
      { field: 'message_template_status_update', value: { ...named, event } },
      { field: 'template_category_update', value: { ...named, new_category } },
      { field: 'message_template_components_update', value: { ...named, message_template_element } },
    )
  const time = Math.ceil(Date.now() / 1000) + 5
  it.platform.once(async (request, response) => {
    await tell(time, 'REJECTED', 'MARKETING', 'Told {{1}}.')
    const told = { status: 'rejected', category: 'MARKETING', content: 'Told {{1}}.' }
    await until(async () => expect(await it.get('between')).toMatchObject(told))
    it.platform.answer(request, response)
  })
  await it.edit('between', { components, category: 'UTILITY' })
  await tell(time - 15, 'APPROVED', 'UTILITY', 'Older {{1}}.')
  await until(async () => expect(await it.app.sql`select 1 from callback_items`).toHaveLength(0))
  const left = { status: 'rejected', category: 'MARKETING', content: 'New {{1}} text.' }
  expect(await it.get('between')).toMatchObject(left)
})

test('what a callback tells of the category while the texts are edited stands, and so do texts while the category is', async () => {
  await approved('moved')
  const moved = { message_template_name: 'moved', message_template_language: 'en_US' }
  const tellFirst = (field: string, told: object, shown: object) =>
    it.platform.once(async (request, response) => {
      await it.callbacks.change(field, { ...moved, ...told })
      await until(async () => expect(await it.get('moved')).toMatchObject(shown))
      it.platform.answer(request, response)
    })
  tellFirst('template_category_update', { new_category: 'MARKETING' }, { category: 'MARKETING' })
  expect((await it.edit('moved', { components })).data).toMatchObject({
    category: 'MARKETING',
    content: 'New {{1}} text.',
  })
  await it.app.sql`update templates set status = 'approved', upstream_status = 'APPROVED' where name = 'moved'`
  const content = 'Newer {{1}} text.'
  tellFirst('message_template_components_update', { message_template_element: content }, { content })
  expect((await it.edit('moved', { category: 'UTILITY' })).data).toMatchObject({ category: 'UTILITY', content })
})

test('a category that the platform gives in the place of the one that was asked for stands', async () => {
  await approved('placed')
  it.platform.once(async (request, response) => {
    const value = { message_template_name: 'placed', message_template_language: 'en_US', new_category: 'MARKETING' }
    await it.callbacks.change('template_category_update', value)
    await until(async () => expect(await it.get('placed')).toMatchObject({ category: 'MARKETING' }))
    it.platform.answer(request, response)
  })
  expect((await it.edit('placed', { category: 'UTILITY' })).data).toMatchObject({ category: 'MARKETING' })
})

test('a category that the platform told before the texts were edited counts, however late it comes', async () => {
  await approved('behind')
  // As one that stands here since long ago.
  await it.app.sql`update templates set category_at = now() - interval '1 day' where name = 'behind'`
  const toldAt = Math.floor(Date.now() / 1000) - 60
  await it.edit('behind', { components })
  const value = {
    message_template_name: 'behind',
    message_template_language: 'en_US',
    new_category: 'MARKETING',
  }
  await it.callbacks.changesAt(toldAt, { field: 'template_category_update', value })
  await until(async () => expect(await it.get('behind')).toMatchObject({ category: 'MARKETING' }))
})
