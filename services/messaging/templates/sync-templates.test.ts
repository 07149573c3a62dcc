import { newId } from '@app/shared/values/ids.ts'
import { inTime } from '@app/shared/work/overdue.ts'
import { untilSomebodyWaits } from '@app/test/lock-waits.ts'
import { until } from '@app/test/until.ts'
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest'
import { json, refuse, unheard } from '../testing/template-platform.ts'
import { copyElsewhere, order, type TestTemplates, testTemplates } from '../testing/templates.ts'
import { createReadings } from './readings.ts'

let it: TestTemplates
beforeAll(async () => {
  it = await testTemplates()
})
afterAll(() => it.close())
beforeEach(async () => {
  it.platform.reset()
  await it.app.sql`delete from templates`
})

const theirs = (name: string, more: object = {}) =>
  it.platform.templates.push({ ...order(name), id: `9${name.length}${name}`, status: 'APPROVED', ...more } as never)
const counts = async (options?: object) => {
  const { created, updated, synced } = (await it.sync(options)).data
  return { created, updated, synced }
}
const statuses = async () => {
  const { data } = await it.list({ status: 'all', limit: '100' })
  return Object.fromEntries(data.map(({ name, status }) => [name, status]))
}
const told = (name: string, event: string) =>
  it.callbacks.change('message_template_status_update', {
    event,
    message_template_name: name,
    message_template_language: 'en_US',
  })

test('all pages are followed, and the counts tell what was new and what had changed', async () => {
  it.platform.setPageSize(3)
  for (const name of ['a', 'b', 'c', 'd', 'e', 'f', 'g']) theirs(name)
  expect(await counts()).toEqual({ created: 7, updated: 0, synced: 7 })
  expect(await counts()).toEqual({ created: 0, updated: 0, synced: 7 })
  Object.assign(it.platform.templates[4] ?? {}, { status: 'PAUSED' })
  Object.assign(it.platform.templates[5] ?? {}, { category: 'MARKETING' })
  expect(await counts()).toEqual({ created: 0, updated: 2, synced: 7 })
  expect(await statuses()).toMatchObject({ a: 'approved', e: 'pending' })
})

test('a next page is found by its address where there is no cursor, and one without is no end', async () => {
  for (const name of ['a', 'b']) theirs(name)
  const first = (next: string) =>
    it.platform.once((_request, response) =>
      json(response, { data: it.platform.templates.slice(0, 1), paging: { next } }),
    )
  first('http://elsewhere.invalid/?limit=1&after=1')
  expect(await counts()).toEqual({ created: 2, updated: 0, synced: 2 })
  first('http://elsewhere.invalid/')
  await expect(it.sync()).rejects.toMatchObject({ failure: 'upstream_unavailable' })
})

test('a template made here is not changed by a first sync that finds no score of its quality', async () => {
  await it.create(order('made'))
  for (const one of it.platform.templates) Object.assign(one, { quality_score: { score: 'UNKNOWN' } })
  expect(await counts()).toEqual({ created: 0, updated: 0, synced: 1 })
  for (const one of it.platform.templates) Object.assign(one, { quality_score: { score: 'GREEN' } })
  expect(await counts()).toEqual({ created: 0, updated: 1, synced: 1 })
})

test('the platform’s words become ours', async () => {
  const words = {
    APPROVED: 'approved', PENDING: 'pending', IN_APPEAL: 'pending', PAUSED: 'pending', REJECTED: 'rejected',
    DISABLED: 'rejected', LIMIT_EXCEEDED: 'rejected', DELETED: 'rejected', ARCHIVED: 'rejected', FLAGGED: 'approved',
  } // prettier-ignore
  for (const status of Object.keys(words)) theirs(status.toLowerCase(), { status })
  await it.sync()
  const expected = Object.entries(words).map(([word, status]) => [word.toLowerCase(), status])
  expect(await statuses()).toEqual(Object.fromEntries(expected))
  for (const one of it.platform.templates) one.status = 'LOCKED'
  await it.sync()
  expect(await statuses()).toEqual(Object.fromEntries(expected))
})

test('what the platform has no more is rejected, its name is free, and it may come back', async () => {
  theirs('gone')
  theirs('stays')
  await it.sync()
  it.platform.templates.shift()
  expect(await counts()).toEqual({ created: 0, updated: 1, synced: 1 })
  expect(await counts()).toEqual({ created: 0, updated: 0, synced: 1 })
  expect(await statuses()).toEqual({ gone: 'rejected', stays: 'approved' })
  expect((await it.create(order('gone'))).data).toMatchObject({ status: 'pending' })
})

test('a sync makes nothing of another organization or business account vanish, and of a name what is missing alone', async () => {
  for (const language of ['en_US', 'de']) theirs('gone', { language, id: `8${language}` })
  await it.sync()
  const elsewhere = await copyElsewhere(it)
  const before = await elsewhere()
  it.platform.templates.pop()
  expect(await counts()).toEqual({ created: 0, updated: 1, synced: 1 })
  expect(await elsewhere()).toEqual(before)
  expect(await it.get('gone', { language: 'de' })).toMatchObject({ status: 'rejected' })
  expect(await it.get('gone', { language: 'en_US' })).toMatchObject({ status: 'approved' })
})

test.each([
  ['before', ['APPROVED', 'PENDING_DELETION']],
  ['behind', ['PENDING_DELETION', 'APPROVED']],
])('a name that exists again is told %s the one that is being deleted, and is the new one', async (_place, words) => {
  for (const status of words) theirs('again', { status, id: `7${status}` })
  await it.sync()
  expect(await it.get('again')).toMatchObject({ status: 'approved', provider_template_id: '7APPROVED' })
})

test('a template for codes is one, in the platform’s older word, too', async () => {
  theirs('code', { category: 'OTP' })
  theirs('old', { category: 'TRANSACTIONAL' })
  await it.sync()
  expect(await it.get('code')).toMatchObject({ category: 'AUTHENTICATION' })
  expect(await it.get('old')).toMatchObject({ category: 'UTILITY' })
})

test('a template that the platform tells of oddly stops no other, and is still there; pages end where it writes null', async () => {
  for (const name of ['fine', 'odd']) theirs(name)
  await it.sync()
  Object.assign(it.platform.templates[1] ?? {}, { status: null })
  theirs('new')
  theirs('nameless', { name: 7 })
  it.platform.once((_request, response) => json(response, { data: it.platform.templates, paging: null }))
  expect(await counts()).toMatchObject({ created: 1, updated: 0 })
  expect(await statuses()).toEqual({ fine: 'approved', odd: 'approved', new: 'approved' })
  const paging = { cursors: null, next: null }
  it.platform.once((_request, response) => json(response, { data: it.platform.templates, paging }))
  expect(await counts()).toMatchObject({ created: 0, updated: 0 })
})

test('syncs at once make no template twice, and a key makes one sync', async () => {
  for (let n = 0; n < 250; n++) theirs(`t${n}`)
  const all = await Promise.all([it.sync(), it.sync(), it.sync(), it.sync()])
  expect(all.reduce((sum, { data }) => sum + data.created, 0)).toBe(250)
  const [row] = await it.app.sql`select count(*)::int as count from templates`
  expect(row?.['count']).toBe(250)
  const first = await it.sync({ key: 's1' })
  expect(await it.sync({ key: 's1' })).toEqual({ ...first, replayed: true })
})

/** A sync that waits for the template `a`, and has not locked `z` before it. */
async function syncHeldUp() {
  const { sql } = it.app
  const { syncing } = await sql.begin(async (tx) => {
    await tx`select from templates where name = 'a' for update`
    const going = it.sync()
    await untilSomebodyWaits(sql)
    await tx`select from templates where name = 'z' for update nowait`
    return { syncing: going }
  })
  return syncing
}

test('syncs of very many templates lock them in one order, whatever the platform’s is', async () => {
  const between = Array.from({ length: 199 }, (_, n) => `m${String(n).padStart(3, '0')}`)
  for (const name of ['z', ...between, 'a']) theirs(name)
  await it.sync()
  expect((await syncHeldUp()).data).toMatchObject({ synced: 201 })
})

test.each([
  ['found and vanished', ['z']],
  ['vanished', []],
])('a sync locks templates in one order that are %s', async (_which, stay) => {
  for (const name of ['z', 'a']) {
    theirs(name)
    await it.sync()
  }
  it.platform.templates.splice(0, 2, ...it.platform.templates.filter(({ name }) => stay.includes(name)))
  expect((await syncHeldUp()).data).toMatchObject({ updated: 2 - stay.length })
})

test("one organization's syncs leave connections for others", async () => {
  const { sql } = it.app
  theirs('a')
  await it.sync()
  let ended = 0
  const syncs = await sql.begin(async (tx) => {
    // They take as long as those of very many templates.
    await tx`select from templates where name = 'a' for update`
    const all = Promise.allSettled(Array.from({ length: 30 }, () => it.sync().finally(() => ended++)))
    await untilSomebodyWaits(sql)
    await sql`select 1`
    expect(ended).toBe(0)
    return { all }
  })
  expect((await syncs.all).filter(({ status }) => status === 'fulfilled')).toHaveLength(30)
})

test('a sync does not undo what a callback told after it had asked', async () => {
  theirs('paused')
  theirs('other')
  await it.sync()
  Object.assign(it.platform.templates[1] ?? {}, { status: 'REJECTED' })
  // The reading still says APPROVED: its answer was on its way when the callback came.
  it.platform.once(async (request, response) => {
    await told('paused', 'PAUSED')
    await until(async () => expect(await it.get('paused')).toMatchObject({ status: 'pending' }))
    it.platform.answer(request, response)
  })
  expect(await counts()).toEqual({ created: 0, updated: 1, synced: 2 })
  expect(await statuses()).toEqual({ paused: 'pending', other: 'rejected' })
  expect(await counts()).toEqual({ created: 0, updated: 1, synced: 2 })
  expect(await statuses()).toEqual({ paused: 'approved', other: 'rejected' })
})

test('what was told is not undone by what was told before that and comes after a sync', async () => {
  theirs('told')
  await it.sync()
  const named = { message_template_name: 'told', message_template_language: 'en_US' }
  const settled = () => until(async () => expect(await it.app.sql`select 1 from callback_items`).toHaveLength(0))
  const tell = (time: number, new_category: string, new_quality_score: string, message_template_element: string) =>
    it.callbacks.changesAt(
      time,
      { field: 'template_category_update', value: { ...named, new_category } },
      { field: 'message_template_quality_update', value: { ...named, new_quality_score } },
      { field: 'message_template_components_update', value: { ...named, message_template_element } },
    )
  const shown = async () => await it.app.sql`select category, quality, components from templates`
  const time = Math.floor(Date.now() / 1000)
  await tell(time, 'MARKETING', 'GREEN', 'Newer.')
  await settled()
  Object.assign(it.platform.templates[0] ?? {}, { category: 'MARKETING', quality_score: { score: 'YELLOW' } })
  expect(await counts()).toEqual({ created: 0, updated: 1, synced: 1 })
  const read = await shown()
  expect(read).toMatchObject([{ category: 'MARKETING', quality: 'YELLOW' }])
  await tell(time - 15, 'UTILITY', 'RED', 'Older.')
  await settled()
  expect(await shown()).toEqual(read)
})

test('what a callback tells of a template that is just being read for the first time is not lost', async () => {
  theirs('new', { status: 'PENDING' })
  it.platform.once(async (_request, response) => {
    const stale = structuredClone(it.platform.templates)
    await told('new', 'APPROVED')
    await until(async () => expect(await it.app.sql`select 1 from callback_items where attempts = 0`).toHaveLength(0))
    json(response, { data: stale })
  })
  expect(await counts()).toEqual({ created: 1, updated: 0, synced: 1 })
  await until(async () => expect(await statuses()).toEqual({ new: 'approved' }))
})

test('what a callback tells of a template that a long reading brings only minutes later is not lost', async () => {
  const { sql, callbacks } = it.app
  const looks = async () => (await sql<{ attempts: number }[]>`select attempts from callback_items`)[0]?.attempts
  theirs('new', { status: 'PENDING' })
  it.platform.once(async (_request, response) => {
    const stale = structuredClone(it.platform.templates)
    const value = { event: 'APPROVED', message_template_name: 'new', message_template_language: 'en_US' }
    const changes = [{ field: 'message_template_status_update', value }]
    const time = Math.floor(Date.now() / 1000)
    await it.callbacks.changesAt(time, ...changes)
    await until(async () => expect(await looks()).toBe(1))
    await sql`update callback_items set received_at = received_at - interval '4 minutes'`
    await sql`update callback_lanes set due_at = now() where due_at is not null`
    callbacks.wake()
    await until(async () => expect(await looks()).not.toBe(1))
    json(response, { data: stale })
  })
  expect(await counts()).toEqual({ created: 1, updated: 0, synced: 1 })
  await until(async () => expect(await statuses()).toEqual({ new: 'approved' }))
})

test('a sync that asked earlier does not undo one that asked later', async () => {
  theirs('t')
  await it.sync()
  it.platform.once(async (_request, response) => {
    const stale = structuredClone(it.platform.templates)
    Object.assign(it.platform.templates[0] ?? {}, { status: 'DISABLED' })
    await it.sync()
    json(response, { data: stale })
  })
  expect(await counts()).toEqual({ created: 0, updated: 0, synced: 1 })
  expect(await statuses()).toEqual({ t: 'rejected' })
})

test('a template whose creation ends while a sync is under way does not vanish by it', async () => {
  const made = Promise.withResolvers<unknown>()
  it.platform.once((request, response) => {
    // The sync's reading is without the template, and its answer comes when the creation is over.
    it.platform.once(async (_request, late) => {
      it.platform.answer(request, response)
      await made.promise
      json(late, { data: [] })
    })
    syncing = counts()
  })
  let syncing: ReturnType<typeof counts> | undefined
  made.resolve(await it.create(order('new')))
  expect(await syncing).toEqual({ created: 0, updated: 0, synced: 0 })
  expect(await statuses()).toEqual({ new: 'pending' })
})

test('a creation that is under way is not forgotten by a sync that does not find it yet', async () => {
  const meanwhile: object[] = []
  it.platform.once(async (request, response) => {
    await it.sync()
    meanwhile.push(await statuses())
    it.platform.answer(request, response)
  })
  expect((await it.create(order('slow'))).data).toMatchObject({
    status: 'pending',
    provider_template_id: it.platform.templates[0]?.id,
  })
  expect(meanwhile).toEqual([{ slow: 'pending' }])
})

test('a reading that breaks off writes nothing: no template vanishes', async () => {
  it.platform.setPageSize(1)
  theirs('a')
  theirs('b')
  await it.sync()
  it.platform.once((request, response) => it.platform.answer(request, response))
  it.platform.once(refuse(80007))
  await expect(it.sync()).rejects.toMatchObject({ failure: 'upstream_unavailable', status: 502 })
  for (const refused of [refuse(190, undefined, { status: 401 }), refuse(100, 33)]) {
    it.platform.once(refused)
    await expect(it.sync()).rejects.toMatchObject({ failure: 'upstream_refused', status: 422 })
  }
  expect(await statuses()).toEqual({ a: 'approved', b: 'approved' })
})

test('a creation whose outcome nobody knew is adopted when the platform has it, forgotten when not', async () => {
  it.platform.once((request, response) => {
    it.platform.answer(request, unheard)
    response.destroy()
  })
  await it.create(order('came')).catch(() => {})
  it.platform.once((_request, response) => void response.destroy())
  await it.create(order('never_came')).catch(() => {})
  expect(await statuses()).toEqual({})
  await it.sync()
  expect(await it.get('came')).toMatchObject({ status: 'pending', provider_template_id: expect.any(String) })
  expect(await it.app.sql`select 1 from templates`).toHaveLength(1)
})

test('a reading that outlasts its caller goes on, is stored without him, and the next caller has its counts', async () => {
  it.platform.setPageSize(1)
  for (const name of ['a', 'b', 'c']) theirs(name)
  const gate = Promise.withResolvers<void>()
  it.platform.once((request, response) => it.platform.answer(request, response))
  it.platform.once((request, response) => void gate.promise.then(() => it.platform.answer(request, response)))
  const late = { failure: 'upstream_unavailable', message: expect.stringContaining('sync again') }
  await expect(it.sync({ deadlineMs: 3_300, key: 'large' })).rejects.toMatchObject(late)
  await expect(it.sync({ deadlineMs: 3_300 })).rejects.toMatchObject(late)
  expect(it.platform.seen).toHaveLength(2)
  gate.resolve()
  await until(async () => expect(await statuses()).toEqual({ a: 'approved', b: 'approved', c: 'approved' }))
  expect(await counts({ key: 'large' })).toEqual({ created: 3, updated: 0, synced: 3 })
  expect(it.platform.seen).toHaveLength(3)
  theirs('d')
  expect(await counts()).toEqual({ created: 1, updated: 0, synced: 4 })
})

test('another organization of the same business account has its own reading', async () => {
  const { sql } = it.app
  const other = { organizationId: newId('org'), phone: '200000001' }
  const [sender] = await sql`select * from senders`
  const moved = { organizationId: other.organizationId, phoneNumberId: other.phone, attached: true }
  await sql`insert into senders ${sql({ ...sender, ...moved })}`
  theirs('a')
  const gate = Promise.withResolvers<void>()
  it.platform.once((request, response) => void gate.promise.then(() => it.platform.answer(request, response)))
  await expect(it.sync({ deadlineMs: 3_300 })).rejects.toMatchObject({ failure: 'upstream_unavailable' })
  gate.resolve()
  await until(async () => expect(await statuses()).toEqual({ a: 'approved' }))
  expect(await counts(other)).toEqual({ created: 1, updated: 0, synced: 1 })
  expect((await it.list({}, other)).data).toMatchObject([{ name: 'a' }])
  expect(await counts()).toEqual({ created: 1, updated: 0, synced: 1 })
  expect(it.platform.seen).toHaveLength(2)
  await sql`delete from senders where organization_id = ${other.organizationId}`
})

test('a reading that goes on without a caller and fails leaves all as it is, and the next caller reads anew', async () => {
  theirs('a')
  await it.sync()
  it.platform.setPageSize(1)
  theirs('b')
  const gate = Promise.withResolvers<void>()
  it.platform.once((request, response) => it.platform.answer(request, response))
  it.platform.once((request, response) => void gate.promise.then(() => refuse(80007)(request, response)))
  await expect(it.sync({ deadlineMs: 3_300 })).rejects.toMatchObject({ failure: 'upstream_unavailable' })
  expect(await statuses()).toEqual({ a: 'approved' })
  gate.resolve()
  // Who comes before it has failed waits for it, and has its failure.
  const next = await counts().catch(() => counts())
  expect(next).toEqual({ created: 1, updated: 0, synced: 2 })
})

test('a reading that goes on without a caller ends when the process stops', async () => {
  theirs('a')
  const { readings } = it.app
  onTestFinished(() => {
    it.app.readings = readings
  })
  it.app.readings = createReadings()
  const hungUp = Promise.withResolvers<unknown>()
  it.platform.once((_request, response) => void response.on('close', hungUp.resolve))
  await expect(it.sync({ deadlineMs: 3_300 })).rejects.toMatchObject({ failure: 'upstream_unavailable' })
  await inTime(Promise.all([it.app.readings.stop(), hungUp.promise]), 5_000)
  expect(await statuses()).toEqual({})
})
