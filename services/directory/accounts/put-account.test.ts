import { systemCaller } from '@app/shared/bus/ask.ts'
import { newId } from '@app/shared/values/ids.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { newNumber, testDirectory, type TestDirectory } from '../testing/app.ts'
import { telling } from '../testing/changes.ts'
import { putAccount } from './put-account.ts'

let directory: TestDirectory
beforeAll(async () => {
  directory = await testDirectory()
})
afterAll(() => directory.drop())

type State = Awaited<ReturnType<typeof newNumber>>['state']
const put = (body: State) => putAccount(directory.app, { params: {}, query: {}, body }, systemCaller())

test('a newer version replaces an older one, never the other way, and answers what is here', async () => {
  const { state, listContacts, open } = await newNumber(directory.app)
  await open({ phone_number: '+15550123456' })
  const customer = { id: newId('cus'), name: 'Bakery' }
  expect(await put({ ...state, version: 3, phone_number: '+15550002222', customer })).toEqual({ version: 3 })
  expect(await put({ ...state, version: 2, phone_number: '+15550003333' })).toEqual({ version: 3 })
  const { data } = await listContacts()
  expect(data[0]?.chat_account).toEqual({
    phone_number: '+15550002222',
    phone_number_id: state.phone_number_id,
    customer,
  })
})

test('the newest of parallel versions is here in the end', async () => {
  const { state, listContacts, open } = await newNumber(directory.app)
  await open({ phone_number: '+15550123456' })
  const versions = Array.from({ length: 30 }, (_, n) => n + 2).toSorted(() => Math.random() - 0.5)
  await Promise.all(versions.map((version) => put({ ...state, version, phone_number: `+1555000${1000 + version}` })))
  const { data } = await listContacts()
  expect(data[0]?.chat_account.phone_number).toBe('+15550001031')
})

test('a number that came back as another account starts at that account', async () => {
  const { state } = await newNumber(directory.app, { version: 9 })
  const later = { ...state, account_id: newId('acc'), version: 1 }
  expect(await put(later)).toEqual({ version: 1 })
  expect(await put({ ...state, version: 10 })).toEqual({ version: 1 })
})

test('a number that is detached can be read, and takes neither messages nor sends', async () => {
  const number = await newNumber(directory.app)
  const { state, open, inbound, listContacts, listConversations } = number
  const { contact } = await open({ phone_number: '+15550123456' })
  await put({ ...state, version: 2, attached: false })
  expect((await listContacts()).data).toMatchObject([{ id: contact.id }])
  expect((await listConversations()).data).toMatchObject([{ contact: { id: contact.id } }])
  await expect(open({ phone_number: '+15550123456' })).rejects.toMatchObject({ failure: 'resource_not_found' })
  await expect(inbound({ wa_id: '15550123456' })).rejects.toMatchObject({ failure: 'resource_not_found' })
  const entry = { wa_id: '15550123457', name: 'Bo', action: 'add' as const, at: new Date().toISOString() }
  await expect(telling(directory.app, number).contacts([entry])).rejects.toMatchObject({
    failure: 'resource_not_found',
  })
})
