import { systemCaller } from '@app/shared/bus/ask.ts'
import { newId } from '@app/shared/values/ids.ts'
import { until } from '@app/test/until.ts'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { oldMessagesSweep } from '../messages/delete-old-messages.ts'
import type { Step } from '../sends/open-send.ts'
import { accept, organizationId, phoneNumberId, refuse, type TestMessaging, testMessaging } from '../testing/app.ts'
import { inboundValue, platformOf, statusPart } from '../testing/callbacks.ts'
import { explainMessage } from './explain-message.ts'
import { findRequestedMessages } from './find-requested-messages.ts'

let app: TestMessaging
beforeAll(async () => {
  app = await testMessaging()
})
afterAll(() => app.close())
afterEach(async () => {
  app.respondWith(accept)
  await app.setSender({})
})

const explain = (id: string) => explainMessage(app, { params: {}, query: {}, body: { id } }, systemCaller(''))
async function historyOf(id: string) {
  const answer = await explain(id)
  if ('whole' in answer) throw new Error('an explanation is answered by its handler')
  return answer
}
const standing = async (id: string) => (await historyOf(id)).history.at(-1)

let people = 0
const newPerson = () => `+1555020${String(++people).padStart(4, '0')}`

/** An open send that nobody works on for an hour, as it is after `set`. */
async function openSend(set: string, to = newPerson()) {
  await app.sql`update pace set tat = now() + interval '1 hour'`
  const { id, conversationId } = await app.send('hi', { to })
  await app.sql`update send_lanes set due_at = now() + interval '1 hour' where id = ${conversationId}`
  await app.sql.unsafe(`update sends set ${set} where message_id = '${id}'`)
  await app.sql`update pace set tat = now()`
  return { id, conversationId }
}

const never = 'attempts = 0, begun_at = null'
const tried = 'attempts = 2, begun_at = null'

/** A new step has to be here, and to be told. */
const steps: Record<Step, { set: string; make?: (id: string) => Promise<unknown>; what: string | RegExp }> = {
  known: {
    set: tried,
    make: (id) =>
      app.sql`update messages set upstream_id = ${`wamid.${id}`}, rank = 3, status = 'sent' where id = ${id}`,
    what: 'is at the platform, as a callback told: its send ends',
  },
  upload: {
    set: `${never}, media = '{"id":"med_1","path":["image"]}'`,
    what: 'waits until its file is at the platform',
  },
  send: { set: tried, what: 'waits for attempt 3' },
  orphaned: {
    set: 'attempts = 1, begun_at = now()',
    what: 'broke off in attempt 1 with the process that made it: nobody knows yet whether it arrived',
  },
  parked: {
    set: `${tried}, parked_until = now() + interval '1 minute'`,
    what: 'waits for a callback that tells whether the platform took attempt 2; else it fails as delivery_unknown',
  },
  unknown: {
    set: `${tried}, parked_until = now() - interval '1 second'`,
    what: 'no callback told whether the platform took attempt 2: it fails as delivery_unknown',
  },
  refused: {
    set: never,
    make: async (id) => {
      await app.sql`update senders set refusal = 'customer_suspended'`
      return id
    },
    what: 'is about to fail: customer_suspended',
  },
  expired: { set: `${never}, expires_at = now() - interval '1 s'`, what: 'is about to fail: expired' },
}

test.each(Object.entries(steps))('a send whose next step is %s says so', async (_step, { set, make, what }) => {
  const { id } = await openSend(set)
  await make?.(id)
  expect(await standing(id)).toMatchObject({ at: null, what, details: { next_at: expect.any(Date) } })
})

test('a send that waits for the pace of its recipient, or of its number, says so, and until when', async () => {
  const { id, conversationId } = await openSend(never)
  expect((await standing(id))?.what).toBe('waits for the pace of its recipient')
  await app.sql`update pace set tat = now() + interval '1 hour'`
  await app.sql`update send_lanes set due_at = now() where id = ${conversationId}`
  const { what, details } = (await standing(id)) ?? {}
  expect(what).toBe('waits for the pace of its number')
  expect(Number(details?.['next_at'])).toBeGreaterThan(Date.now() + 3_000_000)
  // Written before the clock was put back: no number waits for that.
  await app.sql`update pace set tat = now() + interval '3 days'`
  await until(async () => expect((await standing(id))?.what).toBe('is sent'))
})

test('a send that waits behind another says which, and what that one waits for', async () => {
  const to = newPerson()
  const first = await openSend(tried, to)
  const second = await openSend(never, to)
  expect(await standing(second.id)).toMatchObject({
    what: `waits behind ${first.id}: messages of a conversation go one at a time, in their order`,
    details: { behind: first.id, ahead: 1, which: 'waits for attempt 3', which_next_at: expect.any(Date) },
  })
  const third = await openSend(never, to)
  expect(await standing(third.id)).toMatchObject({ details: { behind: first.id, ahead: 2 } })
})

test('what is parked waits until its callback is waited for no more, and not for its lane', async () => {
  const { id } = await openSend(`${tried}, parked_until = now() + interval '1 minute'`)
  const { details } = (await standing(id)) ?? {}
  expect(Number(details?.['next_at'])).toBeLessThan(Date.now() + 120_000)
})

test('a send that is being called for is told as that, though its sender is refused meanwhile', async () => {
  const { id } = await openSend('attempts = 1, begun_at = now()')
  await app.sql`update send_lanes set held_until = now() + interval '15 s' where due_at > now() + interval '30 minutes'`
  await app.sql`update senders set refusal = 'customer_suspended'`
  expect((await standing(id))?.what).toBe('is being sent: attempt 1')
})

test('a message that failed says why, when, and who decided it', async () => {
  app.respondWith(refuse(131026))
  const { id: refused } = await app.send('no', { to: newPerson() })
  await until(async () => expect(await app.statusOf(refused)).toBe('failed'))
  expect((await standing(refused))?.what).toMatch(/^is failed: \w+, as the platform answered at [\dTZ:.-]+$/)
  const { id: expired, conversationId } = await openSend(`${never}, expires_at = now() - interval '1 s'`)
  await app.sql`update send_lanes set due_at = now() where id = ${conversationId}`
  await until(async () => expect((await standing(expired))?.what).toMatch(/^is failed: expired, as we decided at 20/))
  const unknown = await openSend(steps.unknown.set)
  await app.sql`update send_lanes set due_at = now() where id = ${unknown.conversationId}`
  const doubtful = /^is failed: delivery_unknown, .*; it may have arrived, and a callback may still say so$/
  await until(async () => expect((await standing(unknown.id))?.what).toMatch(doubtful))
  app.respondWith(accept)
  const { id: lost } = await app.send('lost', { to: newPerson() })
  await until(async () => expect(await app.statusOf(lost)).toBe('sent'))
  const [row] = await app.sql<{ upstreamId: string }[]>`select upstream_id from messages where id = ${lost}`
  const errors = [{ code: 131026, title: 'Message undeliverable' }]
  await platformOf(app).messages({ statuses: [statusPart(row?.upstreamId ?? '', 'failed', { errors })] })
  await until(async () => expect(await app.statusOf(lost)).toBe('failed'))
  expect((await standing(lost))?.what).toMatch(/, as a callback of the platform told at 20/)
})

test('a message is found by the id of the platform, and tells which events subscribers were told', async () => {
  const { id } = await app.send('hello', { to: newPerson() })
  await until(async () => expect(await app.statusOf(id)).toBe('sent'))
  const [row] = await app.sql<{ upstreamId: string }[]>`select upstream_id from messages where id = ${id}`
  const byTheirs = await historyOf(row?.upstreamId ?? '')
  expect(byTheirs).toMatchObject({
    id,
    organization_id: organizationId,
    told: [{ id: `${id}:sent`, type: 'message.sent', phone_number_id: phoneNumberId }],
  })
  expect(byTheirs.history).toEqual((await historyOf(id)).history)
  // It was given to the platform twice.
  await app.sql`
    insert into message_doubles ${app.sql({ organization_id: organizationId, message_id: id, upstream_id: 'wamid.TWICE', told: 2 })}
  `
  const { told, ...byOther } = await historyOf('wamid.TWICE')
  expect(byOther).toMatchObject({ id, event_ids: expect.arrayContaining(['wamid.TWICE:delivered']) })
  expect(told).toMatchObject([{ id: `${id}:sent` }, { id: 'wamid.TWICE:delivered', type: 'message.status' }])
  // As one of the phone's app is, of which these events do not tell.
  await app.sql`update messages set source = 'app' where id = ${id}`
  expect(await historyOf(id)).toMatchObject({ told: [] })
})

test('a status that came for a message that is not there waits, and is found by the id of the platform', async () => {
  await expect(explain('wamid.NOBODY')).rejects.toMatchObject({ failure: 'resource_not_found' })
  await platformOf(app).messages({ statuses: [statusPart('wamid.NOBODY', 'delivered')] })
  await until(async () =>
    expect(await historyOf('wamid.NOBODY')).toMatchObject({
      id: null,
      history: [
        {
          what: 'its status delivered came, and waits: no message is known by this id',
          details: { next_at: expect.any(Date) },
        },
      ],
    }),
  )
})

test('what came for a message that is there, and could not be worked through, is told in its order', async () => {
  const { id } = await app.send('hello', { to: newPerson() })
  await until(async () => expect(await app.statusOf(id)).toBe('sent'))
  const [row] = await app.sql<{ upstreamId: string }[]>`select upstream_id from messages where id = ${id}`
  await app.sql`
    insert into callback_items (callback_id, lane, kind, item)
    select n, ${`${organizationId}:${row?.upstreamId}`}, 'status', json_build_object('part', json_build_object('status', status))
    from unnest('{delivered,read}'::text[]) with ordinality s(status, n)
  `
  const whats = (await historyOf(id)).history.map(({ what }) => what)
  expect(whats.filter((what) => what.includes('callback'))).toEqual([
    'a callback of it (delivered) came, and waits: it could not be worked through',
    'a callback of it (read) came, and waits: it could not be worked through',
  ])
})

test('a message that was deleted for its age says so by the id of the platform', async () => {
  await platformOf(app).messages(
    inboundValue('wamid.OLD', 'old', { timestamp: String(Math.floor(Date.now() / 1e3) - 2 * 86_400) }),
  )
  await until(async () => expect((await historyOf('wamid.OLD')).id).not.toBeNull())
  await app.sql`update senders set retention_days = 1`
  const sweep = oldMessagesSweep()
  await sweep(app.sql)
  expect((await historyOf('wamid.OLD')).history.map(({ what }) => what)).toEqual([
    'was deleted: it was older than its organization keeps messages',
  ])
})

test('a message whose file is not here says what it waits for, or that the file was given up', async () => {
  const image = { type: 'image', image: { id: `${Date.now()}`, mime_type: 'image/jpeg', sha256: 'x' } }
  await platformOf(app).messages(inboundValue('wamid.FILE', '', image))
  const whats = async () => (await historyOf('wamid.FILE')).history.map(({ what }) => what)
  await until(async () =>
    expect(await whats()).toContainEqual(
      expect.stringMatching(/^its file is still to be copied from the platform: try \d/),
    ),
  )
  expect((await historyOf('wamid.FILE')).told).toEqual([])
  await app.sql`update media_copies set event = null`
  expect((await historyOf('wamid.FILE')).told).toMatchObject([{ id: 'wamid.FILE', type: 'message.received' }])
  await app.sql`update senders set attached = false`
  expect(await whats()).toContain('its file waits until its number is connected again')
  await app.sql`update senders set attached = true`
  await app.sql`delete from media_copies`
  expect(await whats()).toContain('its file was given up: the platform did not have it, or no longer')
  await app.sql`update media set file_key = 'it is here' where source = 'inbound'`
  expect(await whats()).not.toContainEqual(expect.stringMatching(/^its file/))
  await app.sql`update messages set revoked_at = now(), edits = '[{"id":"e","edited_at":"2026-01-01T00:00:00.000Z"}]' where upstream_id = 'wamid.FILE'`
  expect(await whats()).toEqual(expect.arrayContaining(['edited by its sender', 'deleted for everyone by its sender']))
})

test('a message is found by its request, though that took 20 s, by a clock that is ahead, too, and though nothing else is known of it', async () => {
  const { id } = await app.send('slow', { to: newPerson() })
  const [row] = await app.sql<{ requestId: string }[]>`select request_id from messages where id = ${id}`
  const at = new Date(Date.now() - 20_000).toISOString()
  const found = (body: { request_id: string; at: string; organization_id?: string }) =>
    findRequestedMessages(app, { params: {}, query: {}, body }, systemCaller(''))
  for (const known of [{}, { organization_id: organizationId }]) {
    const body = { request_id: row?.requestId ?? '', at, ...known }
    expect(await found(body)).toEqual({ ids: [id] })
  }
  const ahead = { request_id: row?.requestId ?? '', at: new Date(Date.now() + 20_000).toISOString() }
  expect(await found(ahead)).toEqual({ ids: [id] })
  expect(await found({ ...ahead, organization_id: newId('org') })).toEqual({ ids: [] })
})
