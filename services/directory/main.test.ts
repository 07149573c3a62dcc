import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { call, systemCaller } from '@app/shared/bus/ask.ts'
import { contactCreated, listContacts } from '@app/shared/contracts/contacts.ts'
import { getConversation } from '@app/shared/contracts/conversations.ts'
import { openConversation, putAccount, recordInbound } from '@app/shared/contracts/directory.ts'
import { messageSent } from '@app/shared/contracts/messaging.ts'
import { accountChanged } from '@app/shared/contracts/platform.ts'
import { emit } from '@app/shared/events/events.ts'
import { newId } from '@app/shared/values/ids.ts'
import { streamName } from '@app/shared/events/stream.ts'
import { newAccountState } from '@app/test/account-state.ts'
import { compileCache } from '@app/test/compile-cache.ts'
import { testService, type TestService } from '@app/test/service.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { newInbound } from './testing/app.ts'

const settings = { CURSOR_KEYS: `k1:${Buffer.alloc(32, 1).toString('base64')}` }
let beside: TestService
let directory: ChildProcess

beforeAll(async () => {
  beside = await testService('directory')
  directory = run({ ...settings, DATABASE_URL: beside.databaseUrl, NATS_URL: beside.natsUrl })
  await until(() => call(beside, putAccount, { body: newAccountState() }, systemCaller()))
})
afterAll(async () => {
  directory.kill('SIGKILL')
  await beside.close()
})

const run = (env: NodeJS.ProcessEnv) =>
  spawn(process.execPath, [join(import.meta.dirname, 'main.ts')], {
    env: { ...compileCache, LOG_LEVEL: 'warn', ...env },
    stdio: ['ignore', 'inherit', 'pipe'],
  })

/** Asks again while it fails: a service starts, an event is under way. */
async function until<T>(ask: () => Promise<T>, attempts = 200): Promise<T> {
  try {
    return await ask()
  } catch (err) {
    if (attempts === 0) throw err
    await beside.sql`select pg_sleep(0.05)`
    return until(ask, attempts - 1)
  }
}

test('over the bus: an account is told of, a stranger writes, is answered, and is told of', async () => {
  const state = newAccountState()
  expect(await call(beside, putAccount, { body: state }, systemCaller())).toEqual({ version: 1 })
  const caller = systemCaller(state.organization_id)
  const params = { phone_number_id: state.phone_number_id }

  const inbound = { ...newInbound(), wa_id: '15550123456', profile_name: 'Ana' }
  const { contact, conversation } = await call(beside, recordInbound, { params, body: inbound }, caller)
  const recipient = { phone_number: '+15550123456' }
  const send = { recipient, window: 'open' as const, marketing: false }
  expect(await call(beside, openConversation, { params, body: send }, caller)).toMatchObject({ contact, conversation })

  const query = { phone_number: '+1 555 012 3456' }
  expect(await call(beside, listContacts, { params, query }, caller)).toMatchObject({
    data: [{ id: contact.id, name: 'Ana', chat_account: { phone_number: '+15550001111' } }],
    has_more: false,
  })
  const message = await until(() => lastEvent())
  expect(message).toMatchObject({ type: 'contact.created', data: { contact: { id: contact.id } } })
})

async function lastEvent(): Promise<unknown> {
  const { nc } = beside
  const streams = await nc.jetstreamManager()
  const message = await streams.streams.getMessage(streamName, { last_by_subj: contactCreated.subject })
  return message.json()
}

test('an account is known from its event alone', async () => {
  const state = newAccountState()
  await beside.sql.begin((tx) => emit(tx, accountChanged, state, { organizationId: state.organization_id }))
  const params = { phone_number_id: state.phone_number_id }
  const caller = systemCaller(state.organization_id)
  expect(await until(() => call(beside, listContacts, { params }, caller))).toMatchObject({ data: [], has_more: false })
})

test('a sent message moves its conversation up', async () => {
  const state = newAccountState()
  const caller = systemCaller(state.organization_id)
  const params = { phone_number_id: state.phone_number_id }
  await call(beside, putAccount, { body: state }, systemCaller())
  const send = { recipient: { phone_number: '+15550123456' }, window: 'any' as const, marketing: false }
  const parties = await call(beside, openConversation, { params, body: send }, caller)
  const timestamp = '2026-03-01T12:00:00.000Z'
  await beside.sql.begin((tx) =>
    emit(tx, messageSent, { ...sentMessage, ...parties, timestamp }, { organizationId: state.organization_id }),
  )
  const moved = until(async () => {
    const conversation = await call(
      beside,
      getConversation,
      { params: { ...params, id: parties.conversation.id } },
      caller,
    )
    if (conversation.last_message_at === null) throw new Error('not yet')
    return conversation
  })
  expect(await moved).toMatchObject({ last_message_at: timestamp, last_inbound_at: null })
})

const sentMessage = {
  session: '106540352242922',
  direction: 'outbound' as const,
  from_me: true as const,
  message: {
    id: newId('msg'),
    provider_id: 'wamid.1',
    type: 'text',
    body: 'Hello',
    from: '+15550001111',
    to: '+15550123456',
    status: 'sent',
    source: 'api' as const,
    reply_to_provider_id: null,
  },
  meta: { phone_number_id: '106540352242922', display_phone_number: '+15550001111', provider: 'chat' as const },
}

test('malformed ids are not found, and a bad filter is named', async () => {
  const caller = systemCaller(newId('org'))
  const params = { phone_number_id: '123456', id: 'cnv_1' }
  await expect(call(beside, getConversation, { params }, caller)).rejects.toMatchObject({
    failure: 'resource_not_found',
  })
  const query = { phone_number: 'Ana' }
  await expect(call(beside, listContacts, { params, query }, caller)).rejects.toMatchObject({
    failure: 'invalid_phone_number',
    param: 'phone_number',
  })
})

test('the partitions of the outbox are there before it serves', async () => {
  const day = new Date().toISOString().slice(0, 10).replaceAll('-', '')
  const [row] = await beside.sql<{ isThere: boolean }[]>`select to_regclass(${`outbox_${day}`}) is not null as is_there`
  expect(row?.isThere).toBe(true)
})

test('a wrong environment ends it with a list of what is wrong', async () => {
  const child = run({ NATS_URL: beside.natsUrl, CURSOR_KEYS: 'short' })
  let said = ''
  child.stderr?.on('data', (chunk: Buffer) => (said += chunk.toString()))
  expect(await once(child, 'close')).toEqual([78, null])
  expect(said).toContain('DATABASE_URL')
  expect(said).toContain('CURSOR_KEYS')
})

test('SIGTERM stops it in order', async () => {
  const exited = once(directory, 'exit')
  directory.kill('SIGTERM')
  expect(await exited).toEqual([0, null])
})
