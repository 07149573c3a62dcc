import { createTestDatabase, type TestDatabase } from '@app/test/database.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { systemCaller } from './ask.ts'
import { changesInTurn } from './changes-in-turn.ts'
import { rpc } from '../api/contract.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase('directory')
})
afterAll(() => database.drop())

const answer = z.object({})
const body = z.object({ until: z.custom<Promise<void>>() })
const change = rpc({
  subject: 'rpc.directory.change',
  summary: 'Change',
  http: { method: 'PATCH', path: '/change', tag: 'Test' },
  body,
  answer,
})
const inner = rpc({ subject: 'rpc.directory.inner', summary: 'Of another service', body, answer })

function handlersOf(begun: string[]) {
  const handlers = changesInTurn<TestDatabase, { change: typeof change; inner: typeof inner }>(
    { change, inner },
    {
      change: ({ sql }, input, { requestId }) =>
        sql.begin(async (tx) => {
          await tx`select 1`
          begun.push(requestId)
          await input.body.until
          return {}
        }),
      inner: (_app, input) => input.body.until.then(() => ({})),
    },
  )
  const ask = (name: 'change' | 'inner') => (caller: ReturnType<typeof systemCaller>, until: Promise<void>) =>
    handlers[name](database, { params: {}, query: {}, body: { until } }, caller)
  return { change: ask('change'), inner: ask('inner') }
}

test("an organization's changes wait for each other, and another's, and what services ask, does not", async () => {
  const begun: string[] = []
  const ask = handlersOf(begun)
  const held = Promise.withResolvers<void>()
  const many = Array.from({ length: 30 }, (_, n) => ask.change(systemCaller('org_1', `${n}`), held.promise))
  const inner = Array.from({ length: 30 }, () => ask.inner(systemCaller('org_1'), Promise.resolve()))
  expect(await Promise.all(inner)).toHaveLength(30)
  expect(await ask.change(systemCaller('org_2', 'other'), Promise.resolve())).toEqual({})
  expect(begun.filter((one) => one !== 'other').length).toBeLessThanOrEqual(8)
  held.resolve()
  expect(await Promise.all(many)).toHaveLength(30)
  expect(begun).toHaveLength(31)
})

test('what nobody waits for any more is not done', async () => {
  const begun: string[] = []
  const { change: ask } = handlersOf(begun)
  const held = Promise.withResolvers<void>()
  const first = Array.from({ length: 8 }, () => ask(systemCaller('org_1', 'first'), held.promise))
  const late = ask({ ...systemCaller('org_1', 'late'), deadline: performance.now() + 20 }, held.promise)
  setTimeout(held.resolve, 40)
  await expect(late).rejects.toMatchObject({ failure: 'service_unavailable' })
  await Promise.all(first)
  expect(begun).not.toContain('late')
})
