import { beforeAll, expect, test } from 'vitest'
import { admin } from './admin.ts'
import { client, type Json, newPhone, until } from './client.ts'
import { newTenant, type Tenant } from './tenant.ts'

const { control } = client()
let tenant: Tenant
let phone: string
const names = { utility: 'order_ok', marketing: 'sale', named: 'greeting' }

beforeAll(async () => {
  tenant = await newTenant()
  phone = await tenant.connect()
  const body = (text: string, example: object) => [{ type: 'BODY', text, example }]
  const create = (name: string, more: object) =>
    tenant.ok('POST', `/${phone}/templates`, { name, language: 'en_US', category: 'UTILITY', ...more })
  await create(names.utility, { components: body('Hi {{1}}, order {{2}} left.', { body_text: [['Ana', 'A1']] }) })
  await create(names.marketing, { category: 'MARKETING', components: [{ type: 'BODY', text: 'All is half price.' }] })
  await create(names.named, {
    parameter_format: 'named',
    components: body('Hi {{first}}, welcome!', { body_text_named_params: [{ param_name: 'first', example: 'Ana' }] }),
  })
  await until(async () => {
    const listed: Json[] = await tenant.ok('GET', `/${phone}/templates`)
    expect(listed).toHaveLength(3)
  })
})

const text = (value: string, more: object = {}) => ({ type: 'text', text: value, ...more })
const sendTo = (to: string, name: string, parameters: object[], more: object = {}) =>
  tenant.call('POST', `/${phone}/messages`, {
    messaging_product: 'chat',
    to,
    type: 'template',
    template: { name, language: 'en_US', components: [{ type: 'body', parameters }], ...more },
  })
const messageOf = (answer: Json): Promise<Json> => tenant.ok('GET', `/${phone}/messages/${answer.body.data.id}`)

test('a template opens a conversation with somebody who never wrote, and its content is the rendered text', async () => {
  const answer = await sendTo(newPhone(), names.utility, [text('Ana'), text('A-17')])
  expect(answer.status).toBe(200)
  await until(async () =>
    expect(await messageOf(answer)).toMatchObject({
      type: 'template',
      status: 'read',
      content: 'Hi Ana, order A-17 left.',
    }),
  )
})

test('named parameters go out in any order', async () => {
  const answer = await sendTo(newPhone(), names.named, [text('Ana', { parameter_name: 'first' })])
  await until(async () =>
    expect(await messageOf(answer)).toMatchObject({ status: 'read', content: 'Hi Ana, welcome!' }),
  )
})

test.each([
  ['an unknown name', 'no_such', [], 'template_not_found', 'template.name'],
  [
    'too few parameters',
    names.utility,
    [text('Ana')],
    'template_param_count_mismatch',
    'template.components[0].parameters',
  ],
  [
    'a name that is no variable',
    names.named,
    [text('Ana', { parameter_name: 'last' })],
    'template_param_format_mismatch',
    'template.components[0].parameters[0].parameter_name',
  ],
])('%s is refused before anything is made', async (_, name, parameters, code, param) => {
  const to = newPhone()
  const answer = await sendTo(to, name, parameters)
  expect(answer).toMatchObject({ status: 422, body: { error: { type: 'invalid_request_error', code, param } } })
  expect(await tenant.ok('GET', `/${phone}/contacts?phone_number=${encodeURIComponent(to)}`)).toEqual([])
})

test('a template that is paused, refused by the platform or not approved yet is refused', async () => {
  await control('/control/settings', { reviews: { held: 'hold' } })
  const held = { name: 'held', language: 'en_US', category: 'UTILITY', components: [{ type: 'BODY', text: 'Wait.' }] }
  await tenant.ok('POST', `/${phone}/templates`, held)
  expect(await sendTo(newPhone(), 'held', [])).toMatchObject({
    status: 422,
    body: { error: { code: 'template_not_approved' } },
  })
})

test('a send that the platform refuses as paused fails with that, and the next one is refused here', async () => {
  const paused = {
    name: 'tired',
    language: 'en_US',
    category: 'UTILITY',
    components: [{ type: 'BODY', text: 'Again.' }],
  }
  await tenant.ok('POST', `/${phone}/templates`, paused)
  await until(async () =>
    expect(await tenant.ok('GET', `/${phone}/templates/tired`)).toMatchObject({ status: 'approved' }),
  )
  const to = newPhone()
  await control('/control/faults', { match: { to }, fault: { kind: 'error', code: 132015 } })
  const answer = await sendTo(to, 'tired', [])
  await until(async () =>
    expect(await messageOf(answer)).toMatchObject({
      status: 'failed',
      error: { code: 'template_paused', provider_code: 132015 },
    }),
  )
  expect(await sendTo(newPhone(), 'tired', [])).toMatchObject({
    status: 422,
    body: { error: { code: 'template_paused' } },
  })
})

test('marketing is not sent to whoever stopped it, and is again to whoever resumed; other templates are', async () => {
  const to = newPhone()
  await tenant.openWindow(phone, to)
  const prefer = (value: string) =>
    control('/control/callbacks', {
      kind: 'user_preferences',
      phone_number_id: phone,
      wa_id: to.replace('+', ''),
      value,
    })
  await prefer('stop')
  await until(async () =>
    expect(await sendTo(to, names.marketing, [])).toMatchObject({
      status: 422,
      body: { error: { code: 'marketing_opted_out' } },
    }),
  )
  expect((await sendTo(to, names.utility, [text('Ana'), text('1')])).status).toBe(200)
  await new Promise((resolve) => setTimeout(resolve, 1_100))
  await prefer('resume')
  await until(async () => expect((await sendTo(to, names.marketing, [])).status).toBe(200))
})

test('code 131050 of a send is an opt-out, too', async () => {
  const to = newPhone()
  await control('/control/faults', { match: { to }, fault: { kind: 'error', code: 131050 } })
  const answer = await sendTo(to, names.marketing, [])
  await until(async () => expect(await messageOf(answer)).toMatchObject({ error: { code: 'marketing_opted_out' } }))
  await until(async () =>
    expect(await sendTo(to, names.marketing, [])).toMatchObject({
      status: 422,
      body: { error: { code: 'marketing_opted_out' } },
    }),
  )
})

test('where consent is required, marketing goes only to whoever wrote in', async () => {
  await admin('organization', 'update', tenant.id, '--require-marketing-consent', 'true')
  const stranger = newPhone()
  expect(await sendTo(stranger, names.marketing, [])).toMatchObject({
    status: 422,
    body: { error: { code: 'consent_required' } },
  })
  const known = newPhone()
  await tenant.openWindow(phone, known)
  await until(async () => expect((await sendTo(known, names.marketing, [])).status).toBe(200))
  await admin('organization', 'update', tenant.id, '--require-marketing-consent', 'false')
})

test('a lapsed subscription and a missing entitlement refuse sends at once, and reads go on', async () => {
  const to = newPhone()
  await admin('organization', 'update', tenant.id, '--subscription', 'lapsed')
  const lapsed = await sendTo(to, names.utility, [text('a'), text('b')])
  expect(lapsed).toMatchObject({ status: 422, body: { error: { code: 'subscription_inactive' } } })
  await admin('organization', 'update', tenant.id, '--subscription', 'active', '--features', 'webhooks,platform')
  const unentitled = await sendTo(to, names.utility, [text('a'), text('b')])
  expect(unentitled).toMatchObject({
    status: 403,
    body: { error: { type: 'permission_error', code: 'feature_not_entitled' } },
  })
  expect((await tenant.call('GET', `/${phone}/messages`)).status).toBe(200)
  await admin('organization', 'update', tenant.id, '--features', 'messaging,webhooks,platform')
  expect((await sendTo(to, names.utility, [text('a'), text('b')])).status).toBe(200)
})
