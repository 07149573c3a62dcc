import { expect, test } from 'vitest'
import { until } from '../../until.ts'
import { startTrial, type Trial } from '../trial.ts'

const body = { type: 'BODY', text: 'Hi {{1}}, order {{2}} was shipped.', example: { body_text: [['Ana', 'A1']] } }
const order = { name: 'order_shipped', language: 'en_US', category: 'UTILITY', components: [body] }

const pathOf = ({ number }: Trial, query = '') => `/v23.0/${number.business_account_id}/message_templates${query}`
const create = (trial: Trial, part: object = {}) =>
  trial.graph(trial.number, 'POST', pathOf(trial), { ...order, ...part })
const list = async (trial: Trial, query = '') => {
  const answer = await trial.graph(trial.number, 'GET', pathOf(trial, query))
  return answer.body as unknown as {
    data: Array<Record<string, unknown>>
    paging?: { cursors: { before: string; after: string }; next?: string; previous?: string }
  }
}
const namesOf = ({ data }: Awaited<ReturnType<typeof list>>) => data.map(({ name }) => name)
const statusOf = async ({ graph, number }: Trial, id: unknown) =>
  (await graph(number, 'GET', `/v23.0/${String(id)}?fields=status`)).body['status']

test('creates a template, approves it later, and tells so', async () => {
  const trial = await startTrial({ settings: { review_delay_ms: 700 } })
  const { status, body: created } = await create(trial)
  expect({ status, created }).toEqual({
    status: 200,
    created: { id: expect.stringMatching(/^\d{15}$/), status: 'PENDING', category: 'UTILITY' },
  })
  expect(await statusOf(trial, created['id'])).toBe('PENDING')
  await trial.settled()
  expect(await statusOf(trial, created['id'])).toBe('APPROVED')
  expect(trial.receiver.changes()).toEqual([
    {
      account: trial.number.business_account_id,
      field: 'message_template_status_update',
      value: {
        event: 'APPROVED',
        message_template_id: Number(created['id']),
        message_template_name: 'order_shipped',
        message_template_language: 'en_US',
        reason: 'NONE',
        message_template_category: 'UTILITY',
      },
    },
  ])
})

test('rejects, holds, or decides at once, as the settings say', async () => {
  const trial = await startTrial({ settings: { review: 'reject', review_delay_ms: 10 } })
  const rejected = await create(trial, { name: 'a' })
  await trial.settled()
  expect(trial.receiver.changes()).toMatchObject([{ value: { event: 'REJECTED', reason: 'INVALID_FORMAT' } }])
  const { body: shown } = await trial.graph(
    trial.number,
    'GET',
    `/v23.0/${String(rejected.body['id'])}?fields=rejected_reason`,
  )
  expect(shown).toMatchObject({ rejected_reason: 'INVALID_FORMAT' })
  await trial.set({ reviews: { b: 'hold' } })
  await trial.set({ review: 'approve', review_delay_ms: 0, reviews: { other: 'reject' } })
  const held = await create(trial, { name: 'b' })
  expect((await create(trial, { name: 'c' })).body).toMatchObject({ status: 'APPROVED' })
  await trial.settled()
  expect(await statusOf(trial, held.body['id'])).toBe('PENDING')
  expect(trial.receiver.changes()).toHaveLength(1)
})

test('shows what was written, and other fields when asked', async () => {
  const trial = await startTrial({ settings: { review_delay_ms: 0 } })
  const { body: created } = await create(trial)
  const [shown] = (await list(trial, '?name=order_shipped')).data
  expect(shown).toEqual({ ...order, id: created['id'], status: 'APPROVED', parameter_format: 'POSITIONAL' })
  const { data } = await list(trial, '?name=order_shipped&fields=rejected_reason,quality_score')
  expect(data).toEqual([{ id: created['id'], rejected_reason: 'NONE', quality_score: { score: 'UNKNOWN' } }])
  const odd = await trial.graph(trial.number, 'GET', pathOf(trial, '?fields=colour'))
  expect(odd).toMatchObject({ status: 400, body: { error: { code: 100 } } })
})

test('lists page after page, newest first, to the end and back', async () => {
  const trial = await startTrial({ settings: { review: 'hold' } })
  for (let count = 1; count <= 6; count++) await create(trial, { name: `t${count}` })
  const expected = ['t6', 't5', 't4', 't3', 't2', 't1', 'order_ok']
  expect(namesOf(await list(trial))).toEqual(expected)

  const seen: unknown[] = []
  let page = await list(trial, '?limit=3&fields=name')
  for (;;) {
    seen.push(...namesOf(page))
    if (!page.paging?.next) break
    const next = new URL(page.paging.next)
    expect(next.search).toContain('fields=name')
    page = await list(trial, next.search)
  }
  expect(seen).toEqual(expected)
  expect(namesOf(await list(trial, `?limit=3&before=${page.paging?.cursors.before}`))).toEqual(['t3', 't2', 't1'])
  expect(await list(trial, '?after=bm9uc2Vuc2U')).toMatchObject({ error: { code: 100 } })
  expect(await list(trial, '?status=PENDING&name=t1')).toMatchObject({ data: [{ name: 't1' }] })
  expect(await list(trial, '?status=REJECTED')).toEqual({ data: [] })
  expect(await list(trial, '?language=de')).toEqual({ data: [] })
  expect(namesOf(await list(trial, '?category=UTILITY&name=ord'))).toEqual(['order_ok'])
})

test('refuses a name and language that are taken, and while a deletion holds them', async () => {
  const trial = await startTrial({ settings: { review_delay_ms: 0 } })
  const { graph, number } = trial
  const { body: created } = await create(trial)
  expect(await create(trial)).toMatchObject({
    status: 400,
    body: {
      error: {
        message: 'Invalid parameter',
        code: 100,
        error_subcode: 2388024,
        is_transient: false,
        error_user_title: expect.any(String),
        error_user_msg: expect.any(String),
      },
    },
  })
  const other = await create(trial, { language: 'de' })
  expect(other).toMatchObject({ status: 200 })
  expect(await graph(number, 'DELETE', pathOf(trial, `?name=order_shipped&hsm_id=${String(created['id'])}`))).toEqual({
    status: 200,
    body: { success: true },
  })
  expect(await create(trial)).toMatchObject({ status: 400, body: { error: { error_subcode: 2388023 } } })
  expect(await statusOf(trial, other.body['id'])).toBe('APPROVED')
  expect(await graph(number, 'DELETE', pathOf(trial, '?name=order_shipped'))).toMatchObject({ status: 200 })
  expect(await graph(number, 'DELETE', pathOf(trial, '?name=order_shipped'))).toMatchObject({
    status: 400,
    body: { error: { error_subcode: 2593002 } },
  })
  expect(await statusOf(trial, other.body['id'])).toBeUndefined()
})

test('edits what is decided, reviews it again, and refuses the rest', async () => {
  const trial = await startTrial({ settings: { review: 'hold' } })
  const { graph, control, number } = trial
  const id = String((await create(trial)).body['id'])
  const edit = (change: object) => graph(number, 'POST', `/v23.0/${id}`, change)
  const components = [{ type: 'BODY', text: 'It is here.' }]
  const refused = { status: 400, body: { error: { code: 100 } } }
  expect(await edit({ components })).toMatchObject(refused)

  await control('POST', `templates/${id}`, { status: 'APPROVED' })
  expect(await edit({ category: 'MARKETING' })).toMatchObject(refused)
  expect(await edit({ name: 'other', components })).toMatchObject(refused)
  expect(await edit({ components: [] })).toMatchObject(refused)
  expect(await edit({})).toMatchObject(refused)
  expect(await edit({ message_send_ttl_seconds: 60 })).toMatchObject({ status: 200 })
  expect(await statusOf(trial, id)).toBe('APPROVED')
  expect(await edit({ components })).toEqual({ status: 200, body: { success: true } })
  const { body: shown } = await graph(number, 'GET', `/v23.0/${id}`)
  expect(shown).toMatchObject({ status: 'PENDING', components })

  await control('POST', `templates/${id}`, { status: 'APPROVED' })
  expect(await edit({ components })).toMatchObject(refused)
  await trial.set({ template_edit_limits: false })
  expect(await edit({ components })).toMatchObject({ status: 200 })
  await control('POST', `templates/${id}`, { status: 'REJECTED', reason: 'SCAM' })
  expect(await edit({ category: 'MARKETING' })).toMatchObject({ status: 200 })
})

test('scripts decisions, pauses and categories, and tells each', async () => {
  const trial = await startTrial({ settings: { review: 'hold' } })
  const id = String((await create(trial)).body['id'])
  const { control, receiver } = trial
  for (const change of [
    { status: 'REJECTED', reason: 'ABUSIVE_CONTENT' },
    { status: 'PAUSED' },
    { status: 'DISABLED' },
    { category: 'MARKETING' },
    { quality: 'RED' },
  ])
    expect(await control('POST', `templates/${id}`, change)).toMatchObject({ status: 200, body: { id } })
  await trial.settled()
  const told = receiver.changes().map(({ field, value }) => ({ field, value: value as unknown }))
  expect(told).toMatchObject([
    {
      field: 'message_template_status_update',
      value: { event: 'REJECTED', reason: 'ABUSIVE_CONTENT', rejection_info: {} },
    },
    { field: 'message_template_status_update', value: { event: 'PAUSED', other_info: {} } },
    { field: 'message_template_status_update', value: { event: 'DISABLED', disable_info: {} } },
    { field: 'template_category_update', value: { previous_category: 'UTILITY', new_category: 'MARKETING' } },
    {
      field: 'message_template_quality_update',
      value: { previous_quality_score: 'UNKNOWN', new_quality_score: 'RED' },
    },
  ])
  expect(await control('POST', 'templates/1', { status: 'PAUSED' })).toMatchObject({ status: 400 })
  await control('DELETE', `templates/${id}`)
  expect(await statusOf(trial, id)).toBeUndefined()
})

test('keeps an account from the templates of another', async () => {
  const trial = await startTrial()
  const id = String((await create(trial)).body['id'])
  const other = await trial.addNumber()
  expect(await trial.graph(other, 'GET', pathOf(trial))).toMatchObject({ status: 403, body: { error: { code: 10 } } })
  expect(await trial.graph(other, 'GET', `/v23.0/${id}`)).toMatchObject({ body: { error: { error_subcode: 33 } } })
  expect(await trial.graph(other, 'POST', `/v23.0/${id}`, {})).toMatchObject({ body: { error: { error_subcode: 33 } } })
  const sibling = await trial.addNumber({ business_account_id: trial.number.business_account_id })
  expect(await trial.graph(sibling, 'GET', `/v23.0/${id}`)).toMatchObject({ status: 200 })
})

test('lets an account create a hundred in an hour, and have as many as its quota', async () => {
  const trial = await startTrial({ settings: { review: 'hold', templates_per_hour: 2, template_quota: 4 } })
  expect(await create(trial, { name: 'a' })).toMatchObject({ status: 200 })
  expect(await create(trial, { name: 'b' })).toMatchObject({ status: 200 })
  expect(await create(trial, { name: 'c' })).toMatchObject({ status: 400, body: { error: { code: 80007 } } })
  await trial.set({ templates_per_hour: 100 })
  expect(await create(trial, { name: 'c' })).toMatchObject({ status: 200 })
  expect(await create(trial, { name: 'd' })).toMatchObject({ status: 400, body: { error: { error_subcode: 2388019 } } })
})

test('decides nothing that a script has decided, or that is gone', async () => {
  const trial = await startTrial({ settings: { review_delay_ms: 1_000 } })
  const scripted = String((await create(trial, { name: 'a' })).body['id'])
  await create(trial, { name: 'b' })
  await trial.control('POST', `templates/${scripted}`, { status: 'REJECTED' })
  await trial.graph(trial.number, 'DELETE', pathOf(trial, '?name=b'))
  await trial.settled()
  expect(trial.receiver.changes()).toHaveLength(1)
  await until(async () => expect(await statusOf(trial, scripted)).toBe('REJECTED'))
})
