import { newId } from '@app/shared/values/ids.ts'
import { untilSomebodyWaits } from '@app/test/lock-waits.ts'
import { until } from '@app/test/until.ts'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { order, type TestTemplates, testTemplates } from '../testing/templates.ts'
import { businessAccountId } from '../testing/callbacks.ts'
import { applyTemplateChange } from './apply-template-change.ts'

let it: TestTemplates
let id: string
beforeAll(async () => {
  it = await testTemplates()
})
afterAll(() => it.close())
beforeEach(async () => {
  it.platform.reset()
  await it.app.sql`delete from templates`
  id = String((await it.create(order('t'))).data.provider_template_id)
})

const now = Date.now()
/** A change that the platform told so many seconds from now. */
const change = (field: string, value: object, seconds = 0, of: object = {}) =>
  it.app.sql.begin((tx) =>
    applyTemplateChange(tx, {
      organizationId: it.organizationId,
      businessAccountId,
      field,
      value: {
        message_template_id: Number(id),
        message_template_name: 't',
        message_template_language: 'en_US',
        ...value,
      },
      at: new Date(now + seconds * 1000),
      ...of,
    }),
  )
const status = (event: string, seconds = 0, more: object = {}) =>
  change('message_template_status_update', { event, ...more }, seconds)
const shown = async () => {
  const [row] = await it.app.sql`select status, upstream_status, category, quality, rejected_reason from templates`
  return row
}

test.each([
  ['APPROVED', 'approved'],
  ['REINSTATED', 'approved'],
  ['REJECTED', 'rejected'],
  ['DISABLED', 'rejected'],
  ['PENDING_DELETION', 'rejected'],
  ['PAUSED', 'pending'],
  ['IN_APPEAL', 'pending'],
])('%s makes it %s, and the word is kept', async (event, expected) => {
  await status(event)
  expect(await shown()).toMatchObject({ status: expected, upstreamStatus: event })
})

test('the language of a callback is written with a hyphen, or as everywhere else', async () => {
  await status('APPROVED', 0, { message_template_language: 'en-US' })
  expect(await shown()).toMatchObject({ status: 'approved' })
  await status('PAUSED', 1, { message_template_language: 'en_US' })
  expect(await shown()).toMatchObject({ status: 'pending' })
  await status('REJECTED', 2, { message_template_language: 'en-GB' })
  expect(await shown()).toMatchObject({ status: 'pending' })
})

test('what is taken from the archive again is sent again', async () => {
  await status('ARCHIVED')
  expect(await shown()).toMatchObject({ status: 'rejected' })
  await status('UNARCHIVED', 1)
  expect(await shown()).toMatchObject({ status: 'approved' })
})

test('FLAGGED and LOCKED leave the status', async () => {
  await status('APPROVED')
  await status('FLAGGED', 1)
  expect(await shown()).toMatchObject({ status: 'approved', upstreamStatus: 'FLAGGED' })
  await status('LOCKED', 2)
  expect(await shown()).toMatchObject({ status: 'approved', upstreamStatus: 'LOCKED' })
})

test('in any order, and again, the newest stands', async () => {
  const events: Array<[string, number]> = [
    ['APPROVED', 10],
    ['PAUSED', 20],
    ['REINSTATED', 30],
  ]
  for (const [event, seconds] of [...events, ...events.toReversed()]) await status(event, seconds)
  expect(await shown()).toMatchObject({ status: 'approved', upstreamStatus: 'REINSTATED' })
})

test('callbacks count by the platform’s time: those of one second in the order in which they came', async () => {
  const second = Math.floor(Date.now() / 1000)
  const value = { message_template_name: 't', message_template_language: 'en_US' }
  const post = (event: string, time?: number) =>
    it.callbacks.changesAt(time, { field: 'message_template_status_update', value: { event, ...value } })
  const untilShown = (word: string) => until(async () => expect(await shown()).toMatchObject({ upstreamStatus: word }))
  await post('PAUSED', second)
  await untilShown('PAUSED')
  await post('APPROVED', second)
  await untilShown('APPROVED')
  const [within] = await it.app.sql`select status_at > to_timestamp(${second}) as is_behind from templates`
  expect(within).toEqual({ isBehind: true })
  await post('DISABLED', second - 20)
  await post('FLAGGED')
  await untilShown('FLAGGED')
  expect(await shown()).toMatchObject({ status: 'approved' })
})

test('a callback from before the template was submitted, or read, changes nothing', async () => {
  await status('REJECTED', -3600)
  expect(await shown()).toMatchObject({ status: 'pending' })
  Object.assign(it.platform.templates[0] ?? {}, { status: 'APPROVED' })
  // As one that stands here since long ago.
  await it.app.sql`
    update templates set status_at = '-infinity', category_at = '-infinity', quality_at = '-infinity', components_at = '-infinity'
  `
  await it.sync()
  await status('REJECTED', -3600)
  await change('template_category_update', { new_category: 'MARKETING' }, -3600)
  await change('message_template_quality_update', { new_quality_score: 'RED' }, -3600)
  await change('message_template_components_update', { message_template_element: 'Older.' }, -3600)
  expect(await shown()).toMatchObject({ status: 'approved', category: 'UTILITY', quality: null })
  expect(await it.get('t')).toMatchObject({ content: 'Hi {{1}}, order {{2}} shipped.' })
})

test('a rejection keeps its reason, which an approval takes away', async () => {
  await status('REJECTED', 0, { reason: 'TAG_CONTENT_MISMATCH' })
  expect(await shown()).toMatchObject({ rejectedReason: 'TAG_CONTENT_MISMATCH' })
  await status('APPROVED', 1, { reason: 'NONE' })
  expect(await shown()).toMatchObject({ rejectedReason: null })
})

test('category and quality are kept apart from the status; a category that is only announced is not yet', async () => {
  await status('APPROVED', 50)
  await change('template_category_update', { previous_category: 'UTILITY', new_category: 'MARKETING' }, 10)
  await change('template_category_update', { new_category: 'UTILITY' }, 5)
  await change('template_category_update', { correct_category: 'UTILITY', category_update_timestamp: 1 }, 20)
  await change('message_template_quality_update', { previous_quality_score: 'GREEN', new_quality_score: 'RED' }, 10)
  await change('message_template_quality_update', { new_quality_score: 'YELLOW' }, 5)
  expect(await shown()).toMatchObject({ status: 'approved', category: 'MARKETING', quality: 'RED' })
})

test('new texts replace the old ones, and all else of the components stays', async () => {
  await change('message_template_components_update', {
    message_template_element: 'Hello {{1}}, your {{2}} is on its way.',
    message_template_title: 'No header here',
  })
  const template = await it.get('t')
  expect(template).toMatchObject({ content: 'Hello {{1}}, your {{2}} is on its way.', variables: ['1', '2'] })
  expect(template.components).toEqual([{ ...order('t').components[0], text: 'Hello {{1}}, your {{2}} is on its way.' }])
})

test('new texts that come just while the template is stored anew go into what is stored', async () => {
  const { sql } = it.app
  const footer = { type: 'FOOTER', text: 'New' }
  const content = 'Hello {{1}}, your {{2}} is on its way.'
  const { told } = await sql.begin(async (tx) => {
    await tx`update templates set components = components || ${JSON.stringify([footer])}::text::jsonb`
    const changing = change('message_template_components_update', { message_template_element: content })
    await untilSomebodyWaits(sql)
    return { told: changing }
  })
  await told
  expect(await it.get('t')).toMatchObject({ content, components: [{ type: 'BODY', text: content }, footer] })
})

test('texts that were told before those that stand change nothing', async () => {
  const content = 'Hello {{1}}, your {{2}} is on its way.'
  await change('message_template_components_update', { message_template_element: content }, 20)
  await change('message_template_components_update', { message_template_element: 'Older {{1}}, {{2}}.' }, 10)
  expect(await it.get('t')).toMatchObject({ content })
})

test('the texts of header, footer and buttons are replaced, those of the buttons when they are as many', async () => {
  await it.app.sql`update templates set components = ${it.app.sql.json([
    { type: 'HEADER', format: 'TEXT', text: 'Old' },
    { type: 'BODY', text: 'Hi.' },
    { type: 'FOOTER', text: 'Old' },
    {
      type: 'BUTTONS',
      buttons: [
        { type: 'URL', text: 'See', url: 'https://x.example' },
        { type: 'PHONE_NUMBER', text: 'Call', phone_number: '+15550001111' },
      ],
    },
  ])}`
  const buttons = [
    { message_template_button_text: 'Look', message_template_button_url: 'https://y.example' },
    { message_template_button_text: 'Ring', message_template_button_phone_number: '+15550002222' },
  ]
  const told = { message_template_title: 'New', message_template_footer: 'Bye', message_template_buttons: buttons }
  await change('message_template_components_update', told)
  const components = [
    { type: 'HEADER', format: 'TEXT', text: 'New' },
    { type: 'BODY', text: 'Hi.' },
    { type: 'FOOTER', text: 'Bye' },
    {
      type: 'BUTTONS',
      buttons: [
        { type: 'URL', text: 'Look', url: 'https://y.example' },
        { type: 'PHONE_NUMBER', text: 'Ring', phone_number: '+15550002222' },
      ],
    },
  ]
  expect((await it.get('t')).components).toEqual(components)
  await change('message_template_components_update', { message_template_buttons: buttons.slice(1) }, 1)
  expect((await it.get('t')).components).toEqual(components)
})

test('a field that is null is as one that is absent', async () => {
  await status('APPROVED', 0, { message_template_id: null })
  await change('template_category_update', { new_category: null, correct_category: 'MARKETING' })
  expect(await shown()).toMatchObject({ status: 'approved', category: 'UTILITY' })
  await change('message_template_components_update', {
    message_template_element: 'Hello {{1}}, your {{2}} is on its way.',
    message_template_title: null,
    message_template_footer: null,
    message_template_buttons: null,
  })
  expect(await it.get('t')).toMatchObject({ content: 'Hello {{1}}, your {{2}} is on its way.' })
})

test('another template of the name, another organization, business account and name are left alone', async () => {
  await status('APPROVED', 0, { message_template_id: 4711 })
  await status('APPROVED', 0, { message_template_name: 'unknown' })
  await status('APPROVED', 0, { message_template_language: 'de' })
  for (const of of [{ organizationId: newId('org') }, { businessAccountId: '77' }])
    await change('message_template_status_update', { event: 'APPROVED' }, 0, of)
  expect(await shown()).toMatchObject({ status: 'pending' })
  // An id that JSON cannot hold exactly names nothing; the name does.
  await status('APPROVED', 0, { message_template_id: 123456789012345680000 })
  expect(await shown()).toMatchObject({ status: 'approved' })
})
