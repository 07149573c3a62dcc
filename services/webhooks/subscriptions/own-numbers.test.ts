import { systemCaller } from '@app/shared/bus/ask.ts'
import { Problem } from '@app/shared/api/problem.ts'
import { serve, type Serving } from '@app/shared/bus/rpc.ts'
import { findAccounts, listAccounts } from '@app/shared/contracts/platform.ts'
import { newId } from '@app/shared/values/ids.ts'
import { type TestService, testService } from '@app/test/service.ts'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { ownNumbers } from './own-numbers.ts'

let service: TestService
let platform: Serving
beforeAll(async () => {
  service = await testService('webhooks')
})
afterEach(() => platform.stop())
afterAll(() => service.close())

const [own, foreign] = ['106540352242922', '999999999999']
const caller = systemCaller(newId('org'))

async function check() {
  expect(await ownNumbers(service, [own, own], caller)).toEqual([own])
  await expect(ownNumbers(service, [own, own, foreign], caller)).rejects.toMatchObject({
    failure: 'invalid_field_value',
    param: 'phone_number_ids[2]',
  })
}

test('numbers are held against those alone that they may be, and no other number is read', async () => {
  const asked: string[][] = []
  platform = await serve(
    { ...service, name: 'platform' } as const,
    { findAccounts },
    {
      findAccounts(_app, { body }) {
        asked.push(body.phone_number_ids)
        return Promise.resolve({ phone_number_ids: [own] })
      },
    },
  )
  await check()
  expect(asked).toEqual([
    [own, own],
    [own, own, foreign],
  ])
})

test('a question that fails is not asked in another way', async () => {
  let listed = 0
  platform = await serve(
    { ...service, name: 'platform' } as const,
    { findAccounts, listAccounts },
    {
      findAccounts: () => Promise.reject(new Problem('service_unavailable')),
      listAccounts() {
        listed++
        return Promise.resolve({ data: [], has_more: false, next_cursor: null })
      },
    },
  )
  await expect(ownNumbers(service, [own], caller)).rejects.toMatchObject({ failure: 'service_unavailable' })
  expect(listed).toBe(0)
})

test('numbers are held against the list where platform is of the version before', async () => {
  const account = {
    object: 'account' as const,
    phone_number_id: own,
    phone_number: '+15550001111',
    name: 'Acme',
    status: 'connected' as const,
    upstream_status: 'CONNECTED',
    customer_id: null,
  }
  platform = await serve(
    { ...service, name: 'platform' } as const,
    { listAccounts },
    {
      listAccounts: () => Promise.resolve({ data: [account], has_more: false, next_cursor: null }),
    },
  )
  await check()
})
