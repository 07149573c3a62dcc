import { afterAll, beforeAll, expect, test } from 'vitest'
import { eventsOf, everywhere, newNumber, testDirectory, type TestDirectory } from '../testing/app.ts'
import { telling } from '../testing/changes.ts'
import { at } from '../testing/moments.ts'

let directory: TestDirectory
beforeAll(async () => {
  directory = await testDirectory()
})
afterAll(() => directory.drop())

const thread = (n: number, second: number) => ({
  wa_id: `1555012${3000 + n}`,
  bsuid: null,
  last_message_at: at(second),
})

test('old conversations are made once, without events, unread messages or a window, however many ask at once', async () => {
  const number = await newNumber(directory.app)
  const threads = Array.from({ length: 40 }, (_, n) => thread(n, n))
  const answers = await Promise.all(
    everywhere(directory, number, 4).map(() => telling(directory.newInstance(), number).threads(threads)),
  )
  const [first, ...others] = answers.map((answer) => JSON.stringify(answer))
  expect(new Set(others)).toEqual(new Set([first]))
  const { data } = await number.listConversations({ limit: '100' })
  expect(data).toHaveLength(40)
  expect(data[0]).toMatchObject({ last_message_at: at(39), last_inbound_at: null, unread_count: 0 })
  expect(await eventsOf(directory, number.organizationId)).toEqual([])
})

test('a known conversation only moves forward', async () => {
  const number = await newNumber(directory.app)
  const { threads } = telling(directory.app, number)
  const { contact, conversation } = await number.inbound({ wa_id: '15550123000', sent_at: at(10) })
  expect(await threads([thread(0, 5)])).toMatchObject({ threads: [{ contact, conversation }] })
  expect(await number.getConversation(conversation.id)).toMatchObject({ last_message_at: at(10), unread_count: 1 })
  await threads([thread(0, 20)])
  expect(await number.getConversation(conversation.id)).toMatchObject({
    last_message_at: at(20),
    last_inbound_at: at(10),
  })
})

test('an old conversation tells the user id of whoever is known by number alone, without an event', async () => {
  const number = await newNumber(directory.app)
  const { contacts, threads } = telling(directory.app, number)
  await contacts([{ wa_id: '15550123000', name: 'Ana', action: 'add', at: at(1) }])
  const both = { ...thread(0, 2), bsuid: 'US.1' }
  const answer = await threads([both])
  expect(await threads([both])).toEqual(answer)
  const hidden = await threads([{ ...both, wa_id: null }])
  expect(hidden).toEqual(answer)
  expect((await number.listContacts()).data).toMatchObject([{ phone_number: '+15550123000', bsuid: 'US.1' }])
  expect(await eventsOf(directory, number.organizationId)).toEqual([])
})
