import { setTimeout as sleep } from 'node:timers/promises'
import { newId } from '@app/shared/values/ids.ts'
import { until } from '@app/test/until.ts'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { phoneNumberId } from '../testing/app.ts'
import { businessAccountId } from '../testing/callbacks.ts'
import { json, refuse, type Respond, unheard } from '../testing/template-platform.ts'
import { copyElsewhere, order, type TestTemplates, testTemplates } from '../testing/templates.ts'

let it: TestTemplates
beforeAll(async () => {
  it = await testTemplates()
})
afterAll(() => it.close())
beforeEach(async () => {
  it.platform.reset()
  await it.app.sql`delete from templates`
  await it.app.sql`delete from callback_items`
})

const submitted = () => it.platform.seen.filter(({ method }) => method === 'POST')
const rows = () => it.app.sql`select name, provider_template_id, held_until from templates`

/** As if the lease of a try that died had passed. */
const lapse = async (key: string) => {
  await it.app.sql`update idempotency.keys set held_until = now() - interval '1 s' where key = ${key} and status = 0`
  await it.app.sql`update templates set held_until = now() - interval '1 s' where held_until is not null`
}

test('a created template is submitted in the platform’s words, pending, and shown with what it takes', async () => {
  const { status, data } = await it.create(order(' order_ok '))
  expect(status).toBe(201)
  expect(data).toMatchObject({
    object: 'template',
    name: 'order_ok',
    status: 'pending',
    content: 'Hi {{1}}, order {{2}} shipped.',
    variables: ['1', '2'],
    category: 'UTILITY',
    chat_account: { phone_number: '+15550001111' },
    provider_template_id: it.platform.templates[0]?.id,
  })
  const [call] = submitted()
  expect(call?.path).toBe(`/v23.0/${businessAccountId}/message_templates`)
  expect(call?.authorization).toBe('Bearer token')
  expect(JSON.parse(String(call?.body))).toEqual({ ...order('order_ok'), parameter_format: 'positional' })
  expect(await it.get('order_ok')).toEqual(data)
})

test('a template that the platform approves or rejects at once is so from the start', async () => {
  it.platform.once((_request, response) => json(response, { id: 77, status: 'APPROVED', category: 'MARKETING' }))
  expect((await it.create(order('at_once'))).data).toMatchObject({
    status: 'approved',
    category: 'MARKETING',
    provider_template_id: '77',
  })
})

test('the name of a template that exists here or at the platform is taken, in that language alone', async () => {
  await it.create(order('twice'))
  const taken = { failure: 'template_already_exists', param: 'name' }
  await expect(it.create(order('twice'))).rejects.toMatchObject(taken)
  expect((await it.create(order('twice', { language: 'de' }))).status).toBe(201)
  it.platform.templates.push({ ...order('theirs'), id: '5', status: 'APPROVED' } as never)
  await expect(it.create(order('theirs'))).rejects.toMatchObject(taken)
  it.platform.once(refuse(100, 2388023))
  await expect(it.create(order('being_deleted'))).rejects.toMatchObject(taken)
  expect(await rows()).toHaveLength(2)
})

test('two creations of one name at once make one template', async () => {
  const answers = await Promise.allSettled([it.create(order('race')), it.create(order('race'))])
  expect(answers.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
  expect(it.platform.templates).toHaveLength(1)
})

test.each([
  ['a rule of its own', refuse(100, 2388299, { sentence: 'Variables first.' }), 'invalid_field_value', 'components[0]'],
  ['a field that we cannot name', refuse(100, 2388019, { sentence: 'Too many.' }), 'invalid_field_value', undefined],
  ['the token', refuse(190, undefined, { status: 401, sentence: 'Expired.' }), 'upstream_refused', undefined],
])(
  'a refusal over %s is told in its words and leaves nothing, not even the key',
  async (_what, answer, failure, param) => {
    it.platform.once(answer)
    const refusal = it.create(order('no'), { key: `refused ${failure} ${param}` })
    await expect(refusal).rejects.toMatchObject({
      failure,
      param,
      message: expect.stringMatching(/first|many|Expired/),
    })
    expect(await rows()).toEqual([])
    expect(await it.create(order('no'), { key: `refused ${failure} ${param}` })).toMatchObject({
      status: 201,
      replayed: false,
    })
  },
)

test('a token that is taken no more is reported, so that platform looks at the account', async () => {
  it.platform.once(refuse(190, undefined, { status: 401 }))
  await it.create(order('no_token')).catch(() => {})
  const reports = (await it.base.events()).filter(({ subject }) => subject === 'event.messaging.account-reported')
  expect(reports.at(-1)?.payload).toEqual({
    phone_number_id: phoneNumberId,
    business_account_id: businessAccountId,
    code: 190,
    change: null,
    at: expect.any(String),
  })
})

test('a platform that is busy is a 502 and leaves nothing', async () => {
  it.platform.once(refuse(80007))
  await expect(it.create(order('busy'))).rejects.toMatchObject({ failure: 'upstream_unavailable', status: 502 })
  expect(await rows()).toEqual([])
})

test.each([
  [
    'our proof, which is wrong while the app’s secret is set anew',
    { code: 100, message: 'Invalid appsecret_proof provided' },
  ],
  ['what it says is transient', { code: 987_654, message: 'Wait.', is_transient: true }],
])('a platform that refuses %s is a 502 and leaves nothing', async (_, error) => {
  it.platform.once((_request, response) => json(response, { error }, 400))
  await expect(it.create(order('passing'))).rejects.toMatchObject({ failure: 'upstream_unavailable', status: 502 })
  expect(await rows()).toEqual([])
})

test('a key makes one template: again, it is answered with the first answer; with another body, refused', async () => {
  const first = await it.create(order('once'), { key: 'k1' })
  expect(await it.create(order('once'), { key: 'k1' })).toEqual({ ...first, replayed: true })
  expect(submitted()).toHaveLength(1)
  await expect(it.create(order('other'), { key: 'k1' })).rejects.toMatchObject({ failure: 'idempotency_key_reuse' })
})

test('while a creation runs it is shown as pending, its key is in progress, and its name is taken', async () => {
  it.platform.once(async (request, response) => {
    await expect(it.create(order('slow'), { key: 'k2' })).rejects.toMatchObject({ failure: 'idempotency_in_progress' })
    await expect(it.create(order('slow'))).rejects.toMatchObject({ failure: 'template_already_exists' })
    expect(await it.get('slow')).toMatchObject({ status: 'pending', provider_template_id: null })
    await expect(it.edit('slow', { category: 'MARKETING' })).rejects.toMatchObject({ failure: 'template_not_editable' })
    it.platform.answer(request, response)
  })
  expect((await it.create(order('slow'), { key: 'k2' })).status).toBe(201)
})

test('after a time-out nobody knows: 502, nothing is shown, and the retry finds the template and makes it its own', async () => {
  it.platform.once((request, response) => {
    it.platform.answer(request, unheard)
    response.destroy()
  })
  await expect(it.create(order('unknown'), { key: 'k3' })).rejects.toMatchObject({ failure: 'upstream_unavailable' })
  await expect(it.get('unknown')).rejects.toMatchObject({ failure: 'resource_not_found' })
  const retry = await it.create(order('unknown'), { key: 'k3' })
  expect(retry).toMatchObject({
    status: 201,
    replayed: false,
    data: { provider_template_id: it.platform.templates[0]?.id },
  })
  expect(submitted()).toHaveLength(1)
  expect(await it.create(order('unknown'), { key: 'k3' })).toMatchObject({ replayed: true, data: retry.data })
})

test('a retry that has found the template, and cannot record it, leaves it to the next retry', async () => {
  it.platform.once((request, response) => {
    it.platform.answer(request, unheard)
    response.destroy()
  })
  const options = { key: 'found' }
  await expect(it.create(order('found'), options)).rejects.toMatchObject({ failure: 'upstream_unavailable' })
  await it.app
    .sql`alter table templates add constraint unrecorded check (name <> 'found' or provider_template_id is null)`
  await expect(it.create(order('found'), options)).rejects.toThrow('unrecorded')
  await it.app.sql`alter table templates drop constraint unrecorded`
  expect((await it.create(order('found'), options)).data).toMatchObject({
    provider_template_id: it.platform.templates[0]?.id,
  })
  expect(submitted()).toHaveLength(1)
})

test('a process that dies between the call and its record: the retry adopts the template, with the key or without', async () => {
  for (const options of [{ key: 'k4' }, {}]) {
    const name = 'key' in options ? 'died' : 'died_keyless'
    it.platform.once(async (request, response) => {
      it.platform.answer(request, unheard)
      await sleep(300)
      response.destroy()
    })
    const died = it.create(order(name), options).catch(() => 'died')
    await until(() => expect(it.platform.templates.some((one) => one.name === name)).toBe(true))
    await lapse('k4')
    const calls = submitted().length
    expect((await it.create(order(name), options)).data).toMatchObject({ name, status: 'pending' })
    expect(submitted()).toHaveLength(calls)
    expect(await died).toBe('died')
    expect(await it.get(name)).toMatchObject({ provider_template_id: expect.any(String) })
  }
})

test('a try that died, and that a sync settled since: its key is answered, another creation of the name refused', async () => {
  it.platform.once(async (request, response) => {
    it.platform.answer(request, unheard)
    response.destroy()
  })
  await it.create(order('settled'), { key: 'k7' }).catch(() => {})
  for (const one of it.platform.templates) one.status = 'APPROVED'
  await it.sync()
  await expect(it.create(order('settled'))).rejects.toMatchObject({ failure: 'template_already_exists' })
  expect(await it.create(order('settled'), { key: 'k7' })).toMatchObject({ status: 201, data: { status: 'approved' } })
  expect(submitted()).toHaveLength(1)
})

test('a retry is not answered with what another try of its name has not brought to an end yet', async () => {
  it.platform.once((_request, response) => void response.destroy())
  await it.create(order('at_it'), { key: 'k16' }).catch(() => {})
  const meanwhile = Promise.withResolvers<unknown>()
  it.platform.once(async (request, response) => {
    meanwhile.resolve(await it.create(order('at_it'), { key: 'k16' }).catch((err: unknown) => err))
    it.platform.answer(request, response)
  })
  const { data } = await it.create(order('at_it'), { key: 'k17' })
  expect(await meanwhile.promise).toMatchObject({ failure: 'template_already_exists' })
  expect((await it.create(order('at_it'), { key: 'k16' })).data).toEqual(data)
})

test('a retry whose look-up is refused knows no more than before: its key is answered when a later one finds the template', async () => {
  it.platform.once(async (request, response) => {
    it.platform.answer(request, unheard)
    response.destroy()
  })
  await it.create(order('unseen'), { key: 'k_unseen' }).catch(() => {})
  it.platform.once(refuse(190, undefined, { status: 401 }))
  await expect(it.create(order('unseen'), { key: 'k_unseen' })).rejects.toMatchObject({ failure: 'upstream_refused' })
  await it.sync()
  expect(await it.create(order('unseen'), { key: 'k_unseen' })).toMatchObject({ status: 201, data: { name: 'unseen' } })
  expect(submitted()).toHaveLength(1)
})

const tellings = [
  ['message_template_status_update', { event: 'APPROVED' }],
  ['message_template_status_update', { event: 'DELETED' }],
  ['template_category_update', { new_category: 'MARKETING' }],
  ['message_template_quality_update', { new_quality_score: 'GREEN' }],
  ['message_template_components_update', { message_template_element: 'Hi {{1}}, order {{2}} shipped.' }],
] as const
/** Told, and looked at; it may wait for what it tells of. */
const tell = async (name: string, field: string, value: object, id: number, time?: number) => {
  const named = { message_template_id: id, message_template_name: name, message_template_language: 'en_US' }
  await it.callbacks.changesAt(time, { field, value: { ...value, ...named } })
  await untilLookedAt()
}
const untilLookedAt = () =>
  until(async () => expect(await it.app.sql`select from callback_items where attempts = 0`).toHaveLength(0))
const lookAgain = async () => {
  await it.app.sql`update callback_items set attempts = 0`
  await it.app.sql`update callback_lanes set due_at = now(), arrivals = arrivals + 1`
  it.app.callbacks.wake()
  await untilLookedAt()
}

test.each(tellings)(
  'a try that was given up is not settled by %s %o: another one adopts its template',
  async (field, value) => {
    it.platform.once(async (request, response) => {
      it.platform.answer(request, unheard)
      response.destroy()
    })
    await it.create(order('given_up')).catch(() => {})
    const id = String(it.platform.templates[0]?.id)
    await tell('given_up', field, value, Number(id))
    await expect(it.get('given_up')).rejects.toMatchObject({ failure: 'resource_not_found' })
    expect(await it.create(order('given_up'))).toMatchObject({ status: 201, data: { provider_template_id: id } })
    expect(await it.get('given_up')).toMatchObject({ status: 'pending', category: 'UTILITY' })
    expect(submitted()).toHaveLength(1)
  },
)

test.each(tellings)(
  'a refusal leaves nothing, whatever is told meanwhile of another template of the name: %s %o',
  async (field, value) => {
    it.platform.once(async (request, response) => {
      await tell('freed', field, value, 4711)
      await refuse(100, 2388023)(request, response)
    })
    await expect(it.create(order('freed'))).rejects.toMatchObject({ failure: 'template_already_exists' })
    expect(await rows()).toEqual([])
  },
)

test('a process that dies before the call: the retry submits', async () => {
  it.platform.once((_request, response) => void response.destroy())
  await expect(it.create(order('early'), { key: 'k5' })).rejects.toMatchObject({ failure: 'upstream_unavailable' })
  expect((await it.create(order('early'), { key: 'k5' })).status).toBe(201)
  expect(it.platform.templates).toHaveLength(1)
})

test('a retry finds its template, although another try of the name has ended in between, or a sync before it came', async () => {
  const lost: Respond = (request, response) => {
    it.platform.answer(request, unheard)
    response.destroy()
  }
  it.platform.once(lost)
  await it.create(order('contested'), { key: 'k13' }).catch(() => {})
  const components = [{ type: 'BODY', text: 'Something else.' }]
  await expect(it.create(order('contested', { components }), { key: 'k14' })).rejects.toMatchObject({
    failure: 'template_already_exists',
  })
  const [contested] = it.platform.templates
  expect((await it.create(order('contested'), { key: 'k13' })).data).toMatchObject({
    provider_template_id: contested?.id,
  })

  it.platform.once((_request, response) => void response.destroy())
  await it.create(order('synced'), { key: 'k15' }).catch(() => {})
  await it.sync()
  it.platform.templates.push({ ...order('synced'), id: '16', status: 'PENDING' } as never)
  expect((await it.create(order('synced'), { key: 'k15' })).data).toMatchObject({ provider_template_id: '16' })
})

test('a retry does not take over a template of its name that says something else, known here or not', async () => {
  it.platform.once((_request, response) => void response.destroy())
  await it.create(order('mine'), { key: 'k6' }).catch(() => {})
  const components = [{ type: 'BODY', text: 'Something else.' }]
  it.platform.templates.push({ ...order('mine', { components }), id: '9', status: 'APPROVED' } as never)
  await expect(it.create(order('mine'), { key: 'k6' })).rejects.toMatchObject({ failure: 'template_already_exists' })
  expect(await it.app.sql`select from templates where name = 'mine'`).toHaveLength(0)

  it.platform.once((_request, response) => void response.destroy())
  await it.create(order('known'), { key: 'k9' }).catch(() => {})
  it.platform.templates.push({ ...order('known', { components }), id: '10', status: 'APPROVED' } as never)
  await it.sync()
  await expect(it.create(order('known'), { key: 'k9' })).rejects.toMatchObject({ failure: 'template_already_exists' })
})

test('a retry takes over the template of its own language that is not being deleted, in the category that the platform gave', async () => {
  it.platform.once((_request, response) => void response.destroy())
  await it.create(order('which'), { key: 'k10' }).catch(() => {})
  it.platform.templates.push(
    { ...order('which_other'), id: '10', status: 'APPROVED' } as never,
    { ...order('which', { language: 'de' }), id: '11', status: 'APPROVED' } as never,
    { ...order('which'), id: '12', status: 'PENDING_DELETION' } as never,
    { ...order('which', { category: 'MARKETING' }), id: '13', status: 'PENDING' } as never,
  )
  expect((await it.create(order('which'), { key: 'k10' })).data).toMatchObject({
    language: 'en_US',
    category: 'MARKETING',
    provider_template_id: '13',
  })
})

test('a template that comes to the platform only after its retry has looked for it is found all the same', async () => {
  it.platform.once((_request, response) => void response.destroy())
  await it.create(order('late'), { key: 'k11' }).catch(() => {})
  it.platform.once((request, response) => {
    it.platform.answer(request, response)
    it.platform.templates.push({ ...order('late'), id: '14', status: 'PENDING' } as never)
  })
  expect((await it.create(order('late'), { key: 'k11' })).data).toMatchObject({ provider_template_id: '14' })
})

test('a refusal leaves what a sync has found meanwhile of an earlier try', async () => {
  it.platform.once((_request, response) => void response.destroy())
  await it.create(order('came'), { key: 'k12' }).catch(() => {})
  it.platform.once((request, response) => it.platform.answer(request, response))
  it.platform.once(async (request, response) => {
    it.platform.templates.push({ ...order('came'), id: '15', status: 'APPROVED' } as never)
    await it.sync()
    await refuse(80007)(request, response)
  })
  await expect(it.create(order('came'), { key: 'k12' })).rejects.toMatchObject({ failure: 'upstream_unavailable' })
  expect(await it.get('came')).toMatchObject({ status: 'approved', provider_template_id: '15' })
})

test('a template with names is submitted and edited with them', async () => {
  const named = (text: string) => [
    { type: 'BODY', text, example: { body_text_named_params: [{ param_name: 'first_name', example: 'Ana' }] } },
  ]
  const body = order('with_names', { parameter_format: 'NAMED', components: named('Hi {{first_name}}!') })
  expect((await it.create(body)).data).toMatchObject({ variables: ['first_name'] })
  expect(JSON.parse(String(submitted()[0]?.body))).toEqual({ ...body, parameter_format: 'named' })
  await it.app.sql`update templates set status = 'approved', upstream_status = 'APPROVED'`
  const edited = await it.edit('with_names', { components: named('Hello {{first_name}}!') })
  expect(edited.data).toMatchObject({ content: 'Hello {{first_name}}!' })
})

test('a name that is used anew frees no row of another organization or business account', async () => {
  await it.create(order('reused'))
  await it.app.sql`update templates set status = 'rejected', upstream_status = 'DELETED'`
  it.platform.reset()
  const elsewhere = await copyElsewhere(it)
  const before = await elsewhere()
  expect((await it.create(order('reused'))).status).toBe(201)
  expect(await elsewhere()).toEqual(before)
})

test('a creation that is made, refused or lost leaves another one that is under way to itself', async () => {
  const gate = Promise.withResolvers<void>()
  it.platform.once(async (request, response) => {
    await gate.promise
    it.platform.answer(request, response)
  })
  const slow = it.create(order('under_way'))
  await until(() => expect(submitted()).toHaveLength(1))
  await it.create(order('made'))
  it.platform.once(refuse(100, 2388299))
  await it.create(order('refused')).catch(() => {})
  it.platform.once((_request, response) => void response.destroy())
  await it.create(order('lost')).catch(() => {})
  const calls = submitted().length
  await expect(it.create(order('under_way'))).rejects.toMatchObject({ failure: 'template_already_exists' })
  expect(submitted()).toHaveLength(calls)
  gate.resolve()
  const ids = new Map(it.platform.templates.map(({ name, id }) => [name, id]))
  expect((await slow).data).toMatchObject({ name: 'under_way', status: 'pending' })
  expect(await it.get('made')).toMatchObject({ provider_template_id: ids.get('made') })
})

test('what is told of a template before the answer of its creation stands behind it', async () => {
  it.platform.once(async (_request, response) => {
    await tell('fast', 'message_template_status_update', { event: 'APPROVED' }, 79)
    await tell('fast', 'template_category_update', { new_category: 'MARKETING' }, 79)
    json(response, { id: 79, status: 'PENDING', category: 'UTILITY' })
  })
  await it.create(order('fast'))
  await lookAgain()
  expect(await it.get('fast')).toMatchObject({ status: 'approved', category: 'MARKETING', provider_template_id: '79' })
})

test('what is read of a template before the answer of its creation stands, too', async () => {
  it.platform.once(async (request, response) => {
    it.platform.answer(request, unheard)
    const [made] = it.platform.templates
    Object.assign(made ?? {}, { status: 'APPROVED', category: 'MARKETING' })
    await it.sync()
    json(response, { id: made?.id, status: 'PENDING', category: 'UTILITY' })
  })
  expect((await it.create(order('read'))).data).toMatchObject({ status: 'approved', category: 'MARKETING' })
})

test('what is told of a new template counts, though the clock of the platform is some seconds behind', async () => {
  const { data } = await it.create(order('behind'))
  const time = Math.floor(Date.now() / 1000) - 10
  await tell('behind', 'message_template_status_update', { event: 'APPROVED' }, Number(data.provider_template_id), time)
  expect(await it.get('behind')).toMatchObject({ status: 'approved' })
})

test.each(tellings)(
  'what is told of another template of the name while one is created is not the new one’s: %s %o',
  async (field, value) => {
    it.platform.once(async (request, response) => {
      await tell('another', field, { ...value, message_template_element: 'Other.' }, 4711)
      it.platform.answer(request, response)
    })
    const { data } = await it.create(order('another'))
    await lookAgain()
    expect(await it.get('another')).toEqual(data)
    expect(data).toMatchObject({ status: 'pending', provider_template_id: it.platform.templates[0]?.id })
  },
)

test('a number that is disconnected submits nothing, one that may not send does; one of nobody is not found', async () => {
  await it.base.setSender({ refusal: 'account_not_connected' })
  await expect(it.create(order('off'))).rejects.toMatchObject({ failure: 'account_not_connected' })
  await it.base.setSender({ attached: false })
  await expect(it.create(order('off'))).rejects.toMatchObject({ failure: 'account_not_connected' })
  await it.base.setSender({ refusal: 'customer_suspended' })
  expect((await it.create(order('suspended'))).status).toBe(201)
  it.platform.reset()
  await it.base.setSender({})
  const foreign = { organizationId: newId('org') }
  await expect(it.create(order('foreign'), foreign)).rejects.toMatchObject({ failure: 'resource_not_found' })
  expect(submitted()).toEqual([])
})
