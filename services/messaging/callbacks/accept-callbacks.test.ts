import { setTimeout as sleep } from 'node:timers/promises'
import type { Caller } from '@app/shared/api/contract.ts'
import { systemCaller } from '@app/shared/bus/ask.ts'
import { pack } from '@app/shared/values/packed.ts'
import { untilSomebodyWaits } from '@app/test/lock-waits.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type TestMessaging, testMessaging } from '../testing/app.ts'
import { keepCallback } from './accept-callback.ts'
import { acceptCallbacks } from './accept-callbacks.ts'

let app: TestMessaging
beforeAll(async () => {
  app = await testMessaging()
  await app.sql`alter table callbacks add constraint refused check (body <> 'refused')`
})
afterAll(() => app.close())

const ask = (...bodies: string[]) => askAs(systemCaller(), ...bodies)

const askAs = (caller: Caller, ...bodies: string[]) =>
  acceptCallbacks(app, { params: {}, query: {}, body: pack(bodies.map((body) => Buffer.from(body))) }, caller)

const kept = async () =>
  (await app.sql<{ body: Buffer }[]>`select body from callbacks order by id`).map(({ body }) => body.toString())

test('a callback that cannot be kept is told, and takes none of the others with it', async () => {
  expect(await ask('first', 'refused', 'last')).toEqual({ accepted: [true, false, true] })
  expect(await kept()).toEqual(['first', 'last'])
})

test('a callback without a word is kept, alone or between others', async () => {
  await app.sql`delete from callbacks`
  expect(await ask('')).toEqual({ accepted: [true] })
  expect(await ask('before', '', 'behind')).toEqual({ accepted: [true, true, true] })
  expect(await kept()).toEqual(['', 'before', '', 'behind'])
})

test('what befalls all of them is the failure of the question', async () => {
  await expect(ask('refused', 'refused')).rejects.toMatchObject({ code: '23514' })
})

test('one for whose answer nobody waits any more is not kept, since it is sent again', async () => {
  await app.sql`delete from callbacks`
  const patient = systemCaller()
  const impatient = { ...patient, deadline: performance.now() + 200 }
  let asked: Promise<unknown>[] = []
  await app.sql.begin(async (tx) => {
    await tx`lock table callbacks`
    asked = [ask('in time')]
    await untilSomebodyWaits(app.sql)
    asked.push(askAs(impatient, 'late'), askAs(patient, 'behind it'))
    await sleep(250)
  })
  const told = await Promise.allSettled(asked)
  expect(told.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  expect(told[1]).toMatchObject({ reason: { failure: 'service_unavailable' } })
  expect(await kept()).toEqual(['in time', 'behind it'])
})

/** A callback of a business account, with a message of so many bytes. */
const callbackOf = (account: string, bytes: number) =>
  Buffer.from(
    JSON.stringify({
      object: 'whatsapp_business_account',
      entry: [
        {
          id: account,
          changes: [
            {
              field: 'messages',
              value: {
                metadata: { phone_number_id: '106540352242999' },
                messages: [{ id: 'wamid.1', text: { body: 'x'.repeat(bytes) } }],
              },
            },
          ],
        },
      ],
    }),
  )

const times = (count: number, act: () => Promise<void>) => Promise.allSettled(Array.from({ length: count }, act))

test('a callback does not wait behind all of another business that came before it, nor fails with a large one', async () => {
  const constraint = 'alter table callbacks add constraint small check (length(body) < 1000000)'
  await app.sql.unsafe(constraint)
  const told: string[] = []
  const keep = (account: string, bytes: number) => async () => {
    const came = keepCallback(app, callbackOf(account, bytes), Infinity)
    await came.then(
      () => told.push(account),
      () => told.push(`${account} refused`),
    )
  }
  const flood = times(6, keep('101', 2_000_000))
  await keep('102', 10)()
  expect(told.at(-1)).toBe('102')
  expect(told.length).toBeLessThan(4)
  await flood
})
