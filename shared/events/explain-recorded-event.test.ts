import { createTestDatabase, type TestDatabase } from '@app/test/database.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { systemCaller } from '../bus/ask.ts'
import type { Sql } from '../database/database.ts'
import { newId } from '../values/ids.ts'
import { explainRecordedEvent } from './explain-recorded-event.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase('messaging')
})
afterAll(() => database.drop())

async function explained(id: string, sql: Sql = database.sql) {
  const answer = await explainRecordedEvent(
    { name: 'messaging', sql },
    { params: {}, query: {}, body: { id } },
    systemCaller(),
  )
  if ('whole' in answer) throw new Error('an explanation is answered by its handler')
  return answer
}

const organization = newId('org')

async function record(fields: object, headers: object = { type: 'contact.created', phone: '106540352242922' }) {
  const event = newId('evt')
  const row = { id: `${organization}:${event}`, subject: 'event.a', payload: Buffer.from('{}'), ...fields }
  const about = JSON.stringify({ organization, event, ...headers })
  await database.sql`insert into outbox ${database.sql({ ...row, headers: '{}' })}`
  await database.sql`update outbox set headers = ${about}::text::jsonb where id = ${row.id}`
  return event
}

const now = new Date()
test.each<[string, object, boolean, string]>([
  ['waits', {}, false, 'waits to be published to the event stream'],
  ['is published', { published_at: now }, true, 'was published to the event stream'],
  ['was refused', { refused: 'MAX_PAYLOAD' }, false, 'cannot be published, and was set aside: MAX_PAYLOAD'],
])('an event that %s says so, and whose it is', async (_state, fields, is_published, what) => {
  const event = await record(fields)
  const { event: found, history } = await explained(event)
  expect(found).toEqual({
    organization_id: organization,
    type: 'contact.created',
    phone_number_id: '106540352242922',
    except: null,
    is_published,
  })
  expect(history.map((moment) => moment.what)).toEqual([
    'contact.created was recorded by messaging, with the change that it tells of',
    what,
  ])
})

test('an event for services alone is told as one', async () => {
  const { event, history } = await explained(await record({ published_at: now }, {}))
  expect(event).toMatchObject({ type: null, phone_number_id: null })
  expect(history[0]?.what).toMatch(/^an event for the services alone, which no subscriber gets, was recorded/)
})

test('of what is not there it says nothing, and of an outbox that is too large that it is', async () => {
  expect(await explained(newId('evt'))).toEqual({ event: null, history: [] })
  const tooLarge = () => Promise.reject(Object.assign(new Error('canceling statement'), { code: '57014' }))
  expect(await explained(newId('evt'), tooLarge as unknown as Sql)).toEqual({
    event: null,
    history: [{ at: null, what: 'the outbox of messaging is too large to be looked through for it' }],
  })
})
