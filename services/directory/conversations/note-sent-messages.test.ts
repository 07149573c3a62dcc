import { newId } from '@app/shared/values/ids.ts'
import { untilSomebodyWaits } from '@app/test/lock-waits.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { everywhere, newNumber, testDirectory, type TestDirectory } from '../testing/app.ts'
import { at } from '../testing/moments.ts'
import { noteSentMessages } from './note-sent-messages.ts'

let directory: TestDirectory
beforeAll(async () => {
  directory = await testDirectory()
})
afterAll(() => directory.drop())

interface Sent {
  organization_id: string
  conversation_id: string
  sent_at: string
}
const record = (sent: Sent[]) => noteSentMessages(directory.app.sql, sent)

test('the newest time of each conversation counts, and it only goes forward', async () => {
  const number = await newNumber(directory.app)
  const { conversation } = await number.open({ phone_number: '+15550123456' })
  const sent = (seconds: number) => ({
    organization_id: number.organizationId,
    conversation_id: conversation.id,
    sent_at: at(seconds),
  })
  expect(await record([sent(2), sent(5), sent(3)])).toBe(1)
  expect(await record([sent(4)])).toBe(0)
  expect(await number.getConversation(conversation.id)).toMatchObject({
    last_message_at: at(5),
    last_inbound_at: null,
    unread_count: 0,
  })
})

test('an unknown conversation, or one of another organization, is left alone', async () => {
  const number = await newNumber(directory.app)
  const { conversation } = await number.open({ phone_number: '+15550123456' })
  const [strange, unknown] = [newId('org'), newId('cnv')]
  const answer = await record([
    { organization_id: strange, conversation_id: conversation.id, sent_at: at(1) },
    { organization_id: number.organizationId, conversation_id: unknown, sent_at: at(1) },
  ])
  expect(answer).toBe(0)
  expect(await number.getConversation(conversation.id)).toMatchObject({ last_message_at: null })
})

test('parallel calls over the same conversations in any order end at the newest, beside inbound messages', async () => {
  const number = await newNumber(directory.app)
  const people = Array.from({ length: 150 }, (_, n) => `1555012${5000 + n}`)
  const ids = await Promise.all(
    people.map(async (person) => (await number.open({ phone_number: `+${person}` })).conversation.id),
  )
  const calls = Array.from({ length: 20 }, (_, n) =>
    record(
      ids
        .map((id) => ({ organization_id: number.organizationId, conversation_id: id, sent_at: at(n) }))
        .toSorted(() => Math.random() - 0.5),
    ),
  )
  const inbounds = everywhere(directory, number, 3).flatMap(({ inbound }, n) =>
    people.map((person) => inbound({ wa_id: person, sent_at: at(n + 1) })),
  )
  await Promise.all([...calls, ...inbounds])
  const { data } = await number.listConversations({ limit: '100' })
  expect(data).toHaveLength(100)
  for (const conversation of data) {
    expect(conversation).toMatchObject({ last_message_at: at(19), last_inbound_at: at(3), unread_count: 3 })
  }
})

test('what is sent in a conversation that is just being merged counts where it goes on', async () => {
  const number = await newNumber(directory.app)
  const { conversation: live } = await number.open({ phone_number: '+15550123456' })
  const { conversation: ending } = await number.open({ bsuid: 'US.1' })
  let noting: Promise<number> | undefined
  await directory.sql.begin(async (tx) => {
    await tx`update conversations set merged_into = ${live.id}, status = 'resolved' where id = ${ending.id}`
    noting = record([{ organization_id: number.organizationId, conversation_id: ending.id, sent_at: at(5) }])
    await untilSomebodyWaits(directory.sql)
  })
  expect(await noting).toBe(1)
  expect(await number.getConversation(live.id)).toMatchObject({ last_message_at: at(5) })
  expect(await number.getConversation(ending.id)).toMatchObject({ last_message_at: null })
})
