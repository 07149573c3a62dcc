import { newId } from '@app/shared/values/ids.ts'
import { until } from '@app/test/until.ts'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { businessAccountId } from '../testing/callbacks.ts'
import { json, refuse, unheard } from '../testing/template-platform.ts'
import { order, type TestTemplates, testTemplates } from '../testing/templates.ts'
import { noteRefusedTemplates } from './note-refused-templates.ts'
import { createSpending } from './spending.ts'
import type { TemplateToSend } from './resolve-template.ts'

let it: TestTemplates
beforeAll(async () => {
  it = await testTemplates()
})
afterAll(() => it.close())
beforeEach(async () => {
  it.platform.reset()
  it.app.templates.spending = createSpending()
  await it.app.sql`delete from templates`
})

const text = (...values: string[]) => values.map((value) => ({ type: 'text', text: value }))
const body = (...values: string[]) => [{ type: 'body', parameters: text(...values) }]
const send = (
  name: string,
  components: TemplateToSend['components'] = body('Ana', 'A1'),
  language: TemplateToSend['language'] = 'en_US',
) => it.resolve({ name, language, components })

let names = 0
/** A template that the platform approved; answers its name, which no test used before. */
function approved(more: object = {}) {
  const name = `approved_${names++}`
  it.platform.templates.push({ ...order(name), id: `55${names}`, status: 'APPROVED', ...more } as never)
  return name
}
const calls = () => it.platform.seen.length

test('a template that is not known here is looked up once, with all its languages', async () => {
  const name = approved()
  expect(await send(name)).toEqual({ category: 'UTILITY', language: 'en_US', content: 'Hi Ana, order A1 shipped.' })
  expect(await send(name, body('Bo', 'B2'), { code: 'en_US' })).toMatchObject({ content: 'Hi Bo, order B2 shipped.' })
  expect(calls()).toBe(1)
  await expect(send(name, [], 'de')).rejects.toMatchObject({ failure: 'template_not_found', param: 'template.name' })
})

test('sends at once of an unknown name ask the platform once; a flood of names is bounded', async () => {
  const all = await Promise.allSettled(Array.from({ length: 30 }, () => send('nobody')))
  expect(all.every(({ status }) => status === 'rejected')).toBe(true)
  await expect(send('nobody')).rejects.toMatchObject({ failure: 'template_not_found', status: 422 })
  expect(calls()).toBe(1)
  for (let n = 0; n < 50; n++) await send(`unknown_${n}`).catch(() => {})
  expect(calls()).toBeLessThan(25)
})

test('a platform that does not answer a look-up is a 502, not an unknown template, and is asked again', async () => {
  const name = approved()
  it.platform.once(refuse(2, undefined, { status: 503 }))
  await expect(send(name)).rejects.toMatchObject({ failure: 'upstream_unavailable' })
  expect(await send(name)).toMatchObject({ content: 'Hi Ana, order A1 shipped.' })
})

test.each([
  ['that it does not have, or not for this token', 100, 33, 400],
  ['that it has locked', 131031, undefined, 403],
])(
  'a look-up that is refused over the business account, %s, names no field of the send',
  async (_, code, subcode, status) => {
    const name = approved()
    it.platform.once(refuse(code, subcode, { status }))
    await expect(send(name)).rejects.toMatchObject({ failure: 'upstream_refused', status: 422, param: undefined })
  },
)

test('a name that is not there is asked for again ten seconds later, and what a flood has used up comes back', async () => {
  let now = 0
  it.app.templates.spending = createSpending(() => now)
  await expect(send('to_come')).rejects.toMatchObject({ failure: 'template_not_found' })
  it.platform.templates.push({ ...order('to_come'), id: '71', status: 'APPROVED' } as never)
  now += 10_000
  expect(await send('to_come')).toMatchObject({ content: 'Hi Ana, order A1 shipped.' })
  for (let n = 0; n < 50; n++) await send(`unknown_${n}`).catch(() => {})
  it.platform.templates.push({ ...order('behind'), id: '72', status: 'APPROVED' } as never)
  await expect(send('behind')).rejects.toMatchObject({ failure: 'rate_limit_exceeded', retryAfterSeconds: 12 })
  now += 12_000
  expect(await send('behind')).toMatchObject({ content: 'Hi Ana, order A1 shipped.' })
})

test('a flood of names at one business account is looked up twenty times, and uses up no other’s look-ups', async () => {
  const spending = createSpending(() => 0)
  const asked: string[] = []
  const ask = (account: string, name: string) => spending.lookUp(account, name, async () => void asked.push(account))
  for (let n = 0; n < 50; n++) await ask('flooded', `unknown_${n}`).catch(() => {})
  expect(asked).toHaveLength(20)
  await ask('quiet', 'unknown_0')
  expect(asked.at(-1)).toBe('quiet')
})

test('a template whose creation was given up is looked up, and sent when the platform has it', async () => {
  it.platform.once((request, response) => {
    it.platform.answer(request, unheard)
    response.destroy()
  })
  await it.create(order('given_up')).catch(() => {})
  for (const one of it.platform.templates) one.status = 'APPROVED'
  expect(await send('given_up')).toMatchObject({ content: 'Hi Ana, order A1 shipped.' })
})

test.each([
  ['PENDING', 'template_not_approved'],
  ['REJECTED', 'template_not_approved'],
  ['PAUSED', 'template_paused'],
  ['DISABLED', 'template_disabled'],
  ['DELETED', 'template_not_found'],
])('%s is %s', async (status, failure) => {
  await expect(send(approved({ status }))).rejects.toMatchObject({ failure, status: 422, param: 'template.name' })
})

test('a pause is seen by the next send after its callback, and so is its end', async () => {
  const name = approved()
  await send(name)
  const tell = (event: string) =>
    it.callbacks.change('message_template_status_update', {
      event,
      message_template_name: name,
      message_template_language: 'en_US',
    })
  await tell('PAUSED')
  await until(() => expect(send(name)).rejects.toMatchObject({ failure: 'template_paused' }))
  await tell('APPROVED')
  await until(() => send(name))
})

const heardHoursAgo = (name: string) => it.app.sql`
  update templates set known_at = now() - interval '3 hours 1 minute' where name = ${name}
`

test.each(['PAUSED', 'PENDING', 'REJECTED', 'DISABLED'])(
  'a template that was %s hours ago, of which nothing was told since, is asked about before a send is refused',
  async (status) => {
    const name = approved({ status })
    await expect(send(name)).rejects.toMatchObject({ status: 422 })
    Object.assign(it.platform.templates.at(-1) ?? {}, { status: 'APPROVED' })
    it.app.templates.spending = createSpending()
    await expect(send(name)).rejects.toMatchObject({ status: 422 })
    expect(calls()).toBe(1)
    await heardHoursAgo(name)
    expect(await send(name)).toMatchObject({ content: 'Hi Ana, order A1 shipped.' })
    expect(calls()).toBe(2)
  },
)

test('a template that is still paused is asked about every few hours, and one that is approved never', async () => {
  const paused = approved({ status: 'PAUSED' })
  await expect(send(paused)).rejects.toMatchObject({ failure: 'template_paused' })
  for (const seen of [2, 3]) {
    await heardHoursAgo(paused)
    for (let n = 0; n < 3; n++) {
      it.app.templates.spending = createSpending()
      await expect(send(paused)).rejects.toMatchObject({ failure: 'template_paused' })
      expect(calls()).toBe(seen)
    }
  }
  const fine = approved()
  await send(fine)
  await heardHoursAgo(fine)
  it.app.templates.spending = createSpending()
  await send(fine)
  expect(calls()).toBe(4)
})

test('a template that was paused hours ago and is gone since is not found, and is shown as rejected', async () => {
  const name = approved({ status: 'PAUSED' })
  const others = { id: '56', language: 'de', status: 'PAUSED' }
  it.platform.templates.push({ ...order(name), ...others } as never)
  await expect(send(name)).rejects.toMatchObject({ failure: 'template_paused' })
  it.platform.templates.splice(-2, 1)
  await heardHoursAgo(name)
  it.app.templates.spending = createSpending()
  await expect(send(name)).rejects.toMatchObject({ failure: 'template_not_found' })
  expect(await it.get(name, { language: 'en_US' })).toMatchObject({ status: 'rejected' })
  expect(await it.get(name, { language: 'de' })).toMatchObject({ status: 'pending' })
})

const notFoundForASend = async (name: string) => {
  const { organizationId } = it
  const refused = { organizationId, businessAccountId, name, language: 'en_US', code: 132001 }
  await it.app.sql.begin((tx) => noteRefusedTemplates(tx, [{ ...refused, begunAt: new Date(Date.now() + 5_000) }]))
  it.app.templates.spending = createSpending()
}

test('a template that the platform did not find for a send is asked about before the next: it may be gone, or not be there yet', async () => {
  const name = approved()
  await send(name)
  await notFoundForASend(name)
  expect(await it.get(name)).toMatchObject({ status: 'approved' })
  await send(name)
  it.app.templates.spending = createSpending()
  await send(name)
  expect(calls()).toBe(2)
  await notFoundForASend(name)
  it.platform.templates.pop()
  await expect(send(name)).rejects.toMatchObject({ failure: 'template_not_found' })
  expect(await it.get(name)).toMatchObject({ status: 'rejected' })
})

test('what is heard of a template while the platform is asked about it is newer than that it was not there', async () => {
  const name = approved()
  await send(name)
  await notFoundForASend(name)
  it.platform.templates.pop()
  it.platform.once(async (request, response) => {
    await it.app
      .sql`update templates set upstream_status = 'APPROVED', known_at = clock_timestamp() where name = ${name}`
    it.platform.answer(request, response)
  })
  expect(await send(name)).toMatchObject({ content: 'Hi Ana, order A1 shipped.' })
})

test('of a template that is gone a send that was not refused before tells nothing new: its name can be taken', async () => {
  const name = approved()
  await send(name)
  await it.app.sql`update templates set status = 'rejected', upstream_status = 'VANISHED' where name = ${name}`
  await notFoundForASend(name)
  it.platform.templates.pop()
  expect(await it.create(order(name))).toMatchObject({ status: 201 })
})

test('a changed text takes its new parameters at once', async () => {
  const name = approved()
  await send(name)
  Object.assign(it.platform.templates.at(-1) ?? {}, { components: [{ type: 'BODY', text: 'Now {{1}} only.' }] })
  await it.sync()
  await expect(send(name)).rejects.toMatchObject({ failure: 'template_param_count_mismatch' })
  expect(await send(name, body('one'))).toMatchObject({ content: 'Now one only.' })
  await it.callbacks.change('message_template_components_update', {
    message_template_name: name,
    message_template_language: 'en_US',
    message_template_element: 'Now {{1}} and {{2}}.',
  })
  await until(async () => expect(await send(name)).toMatchObject({ content: 'Now Ana and A1.' }))
})

test('another organization’s template is not found, nor is one of an unknown number', async () => {
  const name = approved()
  await send(name)
  const sending = it.resolve({ name, language: 'en_US' }, { organizationId: newId('org') })
  await expect(sending).rejects.toMatchObject({ failure: 'resource_not_found' })
})

test('an organization that has the number later looks a template up itself, though the one before knew it', async () => {
  const name = approved()
  await send(name)
  const other = newId('org')
  await it.base.setSender({ organization_id: other })
  const sending = it.resolve({ name, language: 'en_US', components: body('Ana', 'A1') }, { organizationId: other })
  expect(await sending).toMatchObject({ content: 'Hi Ana, order A1 shipped.' })
  expect(calls()).toBe(2)
  await it.base.setSender({ organization_id: other, attached: false })
  await it.base.setSender({})
})

const mismatch = (param: string, failure = 'template_param_count_mismatch') => ({ failure, param, status: 422 })

test('the body takes as many parameters as it has variables, of any kind', async () => {
  const name = approved()
  await expect(send(name, body('Ana'))).rejects.toMatchObject(mismatch('template.components[0].parameters'))
  await expect(send(name, body('a', 'b', 'c'))).rejects.toMatchObject(mismatch('template.components[0].parameters'))
  await expect(send(name, [])).rejects.toMatchObject(mismatch('template.components'))
  const parameters = [
    { type: 'currency', currency: { fallback_value: '$9.90', code: 'USD', amount_1000: 9900 } },
    { type: 'date_time', date_time: { fallback_value: 'May 1' } },
  ]
  expect(await send(name, [{ type: 'BODY', parameters }])).toMatchObject({ content: 'Hi $9.90, order May 1 shipped.' })
})

test('values belong to the variables by their numbers, wherever these stand, beyond nine, too', async () => {
  const numbers = Array.from({ length: 11 }, (_, n) => n + 1)
  const text = numbers.toReversed().map((n) => `{{ ${n} }}`)
  const name = approved({ components: [{ type: 'BODY', text: `Hi ${text.join(', ')}.` }] })
  const content = `Hi ${numbers.toReversed().join(', ')}.`
  expect(await send(name, body(...numbers.map(String)))).toMatchObject({ content })
})

test('a body that its values make too long is refused before it is made, and the longest is sent', async () => {
  const tooLong = { failure: 'invalid_field_value', param: 'template.components[0].parameters', status: 400 }
  const again = approved({ components: [{ type: 'BODY', text: `${'{{1}}, '.repeat(170)}.` }] })
  await expect(send(again, body('\u{1F600}'.repeat(32_768)))).rejects.toMatchObject(tooLong)
  expect(await send(again, body('Ana'))).toMatchObject({ content: `${'Ana, '.repeat(170)}.` })

  const once = approved({ components: [{ type: 'BODY', text: '{{1}}.' }] })
  for (const character of ['a', 'я', '"', '\n'])
    expect(await send(once, body(character.repeat(32_767)))).toMatchObject({ content: `${character.repeat(32_767)}.` })
  // One character more, and those of which a page of 100 is too large for the bus.
  for (const value of ['a'.repeat(32_768), '\u{1F600}'.repeat(32_000), '\u0001'.repeat(32_000)])
    await expect(send(once, body(value))).rejects.toMatchObject(tooLong)
})

test('named parameters come in any order, each once, and that of a link without a name', async () => {
  const name = approved({
    parameter_format: 'NAMED',
    components: [
      { type: 'BODY', text: 'Hi {{first}}, order {{order_id}} of {{first}}.' },
      { type: 'BUTTONS', buttons: [{ type: 'URL', text: 'See', url: 'https://x.example/{{1}}' }] },
    ],
  })
  const button = { type: 'button', sub_type: 'url', index: '0', parameters: [{ type: 'text', text: 'A1' }] }
  const named = (...pairs: Array<[string, string]>) => [
    { type: 'body', parameters: pairs.map(([key, value]) => ({ type: 'text', text: value, parameter_name: key })) },
    button,
  ]
  expect(await send(name, named(['order_id', 'A1'], ['first', 'Ana']))).toMatchObject({
    content: 'Hi Ana, order A1 of Ana.',
  })
  const format = 'template_param_format_mismatch'
  const at = (n: number) => mismatch(`template.components[0].parameters[${n}].parameter_name`, format)
  await expect(send(name, named(['first', 'a'], ['other', 'b']))).rejects.toMatchObject(at(1))
  await expect(send(name, named(['first', 'a'], ['first', 'b']))).rejects.toMatchObject(at(1))
  await expect(send(name, body('a', 'b'))).rejects.toMatchObject(at(0))
})

test('a header takes its text’s variable, or one medium of its own kind', async () => {
  const plain = [{ type: 'BODY', text: 'Hello.' }]
  const titled = approved({ components: [{ type: 'HEADER', format: 'TEXT', text: 'Order {{1}}' }, ...plain] })
  await expect(send(titled, [])).rejects.toMatchObject(mismatch('template.components'))
  expect(await send(titled, [{ type: 'header', parameters: text('A1') }])).toMatchObject({ content: 'Hello.' })

  const other = { type: 'location', location: { latitude: 52.5, longitude: 13.4 } }
  const inHeader = [{ type: 'header', parameters: [{ type: 'image', image: { id: '1' } }] }]
  const inBody = [{ type: 'body', parameters: [{ type: 'text', text: 'a' }, other] }]
  await expect(send(titled, inHeader)).rejects.toMatchObject(
    mismatch('template.components[0].parameters[0].type', 'template_param_format_mismatch'),
  )
  await expect(send(approved(), inBody)).rejects.toMatchObject(
    mismatch('template.components[0].parameters[1].type', 'template_param_format_mismatch'),
  )

  const pictured = approved({ components: [{ type: 'HEADER', format: 'IMAGE' }, ...plain] })
  await expect(send(pictured, [])).rejects.toMatchObject(mismatch('template.components'))
  const medium = (type: string) => [{ type: 'header', parameters: [{ type, [type]: { id: '1' } }] }]
  const two = [
    { type: 'header', parameters: [...medium('image'), ...medium('image')].flatMap((one) => one.parameters) },
  ]
  await expect(send(pictured, two)).rejects.toMatchObject(mismatch('template.components[0].parameters'))
  await expect(send(pictured, medium('video'))).rejects.toMatchObject(
    mismatch('template.components[0].parameters[0].type', 'template_param_format_mismatch'),
  )
  expect(await send(pictured, medium('image'))).toMatchObject({ content: 'Hello.' })
  await expect(send(approved({ components: plain }), medium('image'))).rejects.toMatchObject(
    mismatch('template.components[0].parameters'),
  )
})

test('parameters of a component that comes twice, or of the footer, are too many', async () => {
  const name = approved()
  const spare = mismatch('template.components[1].parameters')
  for (const type of ['body', 'BODY', 'footer'])
    await expect(send(name, [...body('a', 'b'), { type, parameters: text('c', 'd') }])).rejects.toMatchObject(spare)
  expect(await send(name, [...body('a', 'b'), { type: 'footer' }])).toMatchObject({ content: 'Hi a, order b shipped.' })
})

test('buttons take what their type takes, by index', async () => {
  const buttons = [
    { type: 'QUICK_REPLY', text: 'Ok' },
    { type: 'URL', text: 'See', url: 'https://x.example/{{1}}' },
    { type: 'URL', text: 'All', url: 'https://x.example' },
    { type: 'COPY_CODE', example: 'C25' },
  ]
  const name = approved({
    components: [
      { type: 'BODY', text: 'Hello.' },
      { type: 'BUTTONS', buttons },
    ],
  })
  const button = (sub_type: string, index: string | number, count = 1) => ({
    type: 'button',
    sub_type,
    index,
    parameters: Array.from({ length: count }, () =>
      sub_type === 'copy_code' ? { type: 'coupon_code', coupon_code: 'x' } : { type: 'text', text: 'x' },
    ),
  })
  const needed = [button('url', '1'), button('copy_code', 3)]
  await send(name, needed)
  await send(name, [button('quick_reply', 0), ...needed])
  await expect(send(name, [])).rejects.toMatchObject(mismatch('template.components'))
  await expect(send(name, needed.slice(0, 1))).rejects.toMatchObject(mismatch('template.components'))
  await expect(send(name, [...needed, button('url', 1)])).rejects.toMatchObject(
    mismatch('template.components[2].parameters'),
  )
  await expect(send(name, [...needed, button('url', 2)])).rejects.toMatchObject(
    mismatch('template.components[2].parameters'),
  )
  await expect(send(name, [...needed, button('url', 7)])).rejects.toMatchObject(
    mismatch('template.components[2].parameters'),
  )
  await expect(send(name, [button('url', 1, 2), ...needed.slice(1)])).rejects.toMatchObject(
    mismatch('template.components[0].parameters'),
  )
  const formatMismatch = (param: string) => mismatch(param, 'template_param_format_mismatch')
  await expect(send(name, [button('quick_reply', 1), ...needed.slice(1)])).rejects.toMatchObject(
    formatMismatch('template.components[0].sub_type'),
  )
  await expect(send(name, [...needed, button('url', 0)])).rejects.toMatchObject(
    formatMismatch('template.components[2].sub_type'),
  )
  const coupon = { ...button('copy_code', 3), parameters: text('C25') }
  await expect(send(name, [...needed.slice(0, 1), coupon])).rejects.toMatchObject(
    formatMismatch('template.components[1].parameters[0].type'),
  )
})

test('a flow, a catalog and products are called as they are, and a number to call takes nothing', async () => {
  const types = ['FLOW', 'CATALOG', 'MPM']
  const buttons = [...types, 'PHONE_NUMBER'].map((type) => ({ type, text: 'Go' }))
  const name = approved({
    components: [
      { type: 'BODY', text: 'Hello.' },
      { type: 'BUTTONS', buttons },
    ],
  })
  const button = (sub_type: string, index: number) => [
    { type: 'button', sub_type, index, parameters: [{ type: 'action' }] },
  ]
  for (const [index, type] of types.entries()) {
    expect(await send(name, button(type.toLowerCase(), index))).toMatchObject({ content: 'Hello.' })
    await expect(send(name, button('quick_reply', index))).rejects.toMatchObject(
      mismatch('template.components[0].sub_type', 'template_param_format_mismatch'),
    )
  }
  await expect(send(name, button('voice_call', 3))).rejects.toMatchObject(mismatch('template.components[0].parameters'))
})

test('a template for codes takes the code, in its body and its button, before the platform’s own text is known', async () => {
  const components = [
    { type: 'BODY', add_security_recommendation: true },
    { type: 'BUTTONS', buttons: [{ type: 'OTP', otp_type: 'COPY_CODE' }] },
  ]
  it.platform.once((_request, response) => json(response, { id: '31', status: 'APPROVED' }))
  const { data } = await it.create(order('code', { category: 'AUTHENTICATION', components }))
  expect(data).toMatchObject({ status: 'approved', content: '{{1}}', variables: ['1'] })
  const button = { type: 'button', sub_type: 'url', index: '0', parameters: text('4711') }
  expect(await send('code', [...body('4711'), button])).toMatchObject({ category: 'AUTHENTICATION', content: '4711' })
  await expect(send('code', body('4711'))).rejects.toMatchObject(mismatch('template.components'))
})
