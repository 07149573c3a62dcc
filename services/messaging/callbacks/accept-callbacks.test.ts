import { systemCaller } from '@app/shared/bus/ask.ts'
import { pack } from '@app/shared/values/packed.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type TestMessaging, testMessaging } from '../testing/app.ts'
import { acceptCallbacks } from './accept-callbacks.ts'

let app: TestMessaging
beforeAll(async () => {
  app = await testMessaging()
  await app.sql`alter table callbacks add constraint refused check (body <> 'refused')`
})
afterAll(() => app.close())

const ask = (...bodies: string[]) =>
  acceptCallbacks(app, { params: {}, query: {}, body: pack(bodies.map((body) => Buffer.from(body))) }, systemCaller())

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
