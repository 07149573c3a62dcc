import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'
import { createTestDatabase, type TestDatabase } from '@app/test/database.ts'
import { startStepProxy } from '@app/test/step-proxy.ts'
import { until } from '@app/test/until.ts'
import { type Caller, rpc } from '../api/contract.ts'
import { once, storedAnswer } from './idempotency.ts'
import { type InlineSteps, type OnceInline, onceInline } from './once-inline.ts'
import { openDatabase, type Sql } from '../database/database.ts'
import { Problem } from '../api/problem.ts'

const contract = rpc({
  subject: 'rpc.messaging.make',
  summary: 'Make one',
  http: { method: 'POST', path: '/make', status: 201, tag: 'Test' },
  answer: z.object({ made: z.string() }),
})

let database: TestDatabase
let app: OnceInline
const warn = vi.fn<(about: { err: unknown }, text: string) => void>()
const wake = vi.fn()
beforeAll(async () => {
  database = await createTestDatabase('messaging')
  const relay = { wake, stop: () => Promise.resolve() }
  app = {
    sql: database.sql,
    relay,
    sealKeys: { current: 'k', byId: new Map() },
    log: { warn },
  } as unknown as OnceInline
  await database.sql`create table made (id text primary key, state text not null)`
})
afterAll(() => database.drop())

let key = 0
beforeEach(() => void key++)

const caller = (fingerprint = 'same', withKey = true): Caller => ({
  organizationId: 'org',
  keyId: '',
  requestId: 'req',
  deadline: Infinity,
  traceparent: '',
  idempotency: withKey ? { key: `k${key}`, fingerprint } : undefined,
})

interface Begun {
  isRetry: boolean
}

/** An operation on one row a test: `call` is what its platform does. */
function run(
  call: (begun: Begun) => Promise<string>,
  asking = caller(),
  more: Partial<InlineSteps<Begun, string, { made: string }>> = {},
  by = app,
) {
  const id = `row${key}`
  return onceInline(by, contract, asking, {
    begin: async (tx, isRetry) => {
      await tx`insert into made values (${id}, 'begun') on conflict (id) do update set state = 'begun again'`
      return { isRetry }
    },
    call,
    finish: async (tx, _begun, made) => {
      await tx`update made set state = ${made} where id = ${id}`
      return { made }
    },
    giveBack: (tx) => tx`update made set state = 'given back' where id = ${id}`,
    ...more,
  })
}
const state = async () =>
  (await database.sql<{ state: string }[]>`select state from made where id = ${`row${key}`}`)[0]?.state
const keyRow = async () =>
  (await database.sql`select status, held_until from idempotency.keys where key = ${`k${key}`}`)[0]
const lapse = () =>
  database.sql`update idempotency.keys set held_until = now() - interval '1 s' where key = ${`k${key}`}`
const bodyOf = ({ body }: { body: Uint8Array }) => Buffer.from(body).toString()

test('the call runs outside any transaction, between two that each are whole', async () => {
  const answer = await run(async ({ isRetry }) => {
    expect(isRetry).toBe(false)
    expect(await state()).toBe('begun')
    expect(await keyRow()).toMatchObject({ status: 0, heldUntil: expect.any(Date) })
    return 'first'
  })
  expect(answer).toMatchObject({ status: 201, replayed: false })
  expect(await state()).toBe('first')
  expect(await keyRow()).toMatchObject({ status: 201, heldUntil: null })
})

test('the events that an operation has recorded go out at once, by this kind of operation and the other', async () => {
  wake.mockClear()
  await run(() => Promise.resolve('made'))
  expect(wake).toHaveBeenCalledTimes(1)
  await once(app, contract, caller('same', false), () => Promise.resolve({ made: 'made' }))
  expect(wake).toHaveBeenCalledTimes(2)
})

test('the same request again is answered with the same bytes, another one refused, one that runs in progress', async () => {
  const first = await run(async () => {
    await expect(run(() => Promise.resolve('double'))).rejects.toMatchObject({ failure: 'idempotency_in_progress' })
    return 'once'
  })
  const again = await run(() => Promise.reject(new Error('called twice')))
  expect(again).toMatchObject({ status: 201, replayed: true })
  expect(bodyOf(again)).toBe(bodyOf(first))
  await expect(run(() => Promise.resolve('x'), caller('other'))).rejects.toMatchObject({
    failure: 'idempotency_key_reuse',
  })
})

test('what runs is held for longer than any caller waits', async () => {
  const holding = async () => {
    const [row] = await database.sql<{ isLong: boolean }[]>`
      select held_until > now() + interval '30 s' as is_long from idempotency.keys where key = ${`k${key}`}
    `
    return String(row?.isLong)
  }
  expect(bodyOf(await run(holding))).toContain('"made":"true"')
})

test('a refusal gives back what was begun, and the key is as if it had never been used', async () => {
  await expect(run(() => Promise.reject(new Problem('upstream_refused')))).rejects.toMatchObject({ status: 422 })
  expect([await state(), await keyRow()]).toEqual(['given back', undefined])
  const later = await run(({ isRetry }) => Promise.resolve(String(isRetry)), caller('other'))
  expect(bodyOf(later)).toContain('false')
})

test('after a failure that nobody knows the end of, the same request may try again at once, and is told so', async () => {
  await expect(run(() => Promise.reject(new Problem('upstream_unavailable')))).rejects.toMatchObject({ status: 502 })
  expect(await state()).toBe('given back')
  await expect(run(() => Promise.resolve('x'), caller('other'))).rejects.toMatchObject({
    failure: 'idempotency_key_reuse',
  })
  expect(await storedAnswer(app.sql, app.sealKeys, caller())).toBeNull()
  const retry = await run(({ isRetry }) => Promise.resolve(String(isRetry)))
  expect(bodyOf(retry)).toContain('true')
})

test('a try whose answer could not be stored may be made again at once', async () => {
  const finish = () => Promise.reject(lost())
  const unheard = run(() => Promise.resolve('unheard'), caller(), { finish })
  await expect(unheard).rejects.toMatchObject({ code: 'CONNECTION_CLOSED' })
  expect(await state()).toBe('given back')
  const retry = await run(({ isRetry }) => Promise.resolve(String(isRetry)))
  expect(bodyOf(retry)).toContain('true')
})

test('what was begun without an answer, and of which nobody says in time whether it was, is given back at once', async () => {
  let isLost = false
  const begin = async (work: Parameters<Sql['begin']>[1]) => {
    const result: unknown = await database.sql.begin(work)
    if (isLost) return result
    isLost = true
    throw lost()
  }
  const silent = () => {
    const answer = Promise.reject(lost())
    // What is a part of a statement is awaited by nobody.
    answer.catch(() => {})
    return answer
  }
  const by = { ...app, sql: Object.assign(silent, { begin }) as unknown as Sql }
  const hurried = { ...caller(), deadline: performance.now() + 300 }
  await expect(run(() => Promise.resolve('x'), hurried, {}, by)).rejects.toMatchObject({ code: 'CONNECTION_CLOSED' })
  expect(await state()).toBe('given back')
  const retry = await run(({ isRetry }) => Promise.resolve(String(isRetry)))
  expect(bodyOf(retry)).toContain('true')
})

const lost = () => Object.assign(new Error('lost'), { code: 'CONNECTION_CLOSED' })

test('while the database is away, what was begun is given back as soon as it is there again', async () => {
  let isAway = false
  const begin: Sql['begin'] = (...work: unknown[]) =>
    isAway ? Promise.reject(lost()) : (database.sql.begin as (...all: unknown[]) => never)(...work)
  const by = { ...app, sql: Object.assign(() => Promise.reject(lost()), { begin }) as unknown as Sql }
  const call = () => {
    isAway = true
    return Promise.resolve('unheard')
  }
  await expect(run(call, caller(), {}, by)).rejects.toMatchObject({ code: 'CONNECTION_CLOSED' })
  expect(await state()).toBe('begun')
  isAway = false
  await until(async () => expect(await state()).toBe('given back'))
  const retry = await run(({ isRetry }) => Promise.resolve(String(isRetry)))
  expect(bodyOf(retry)).toContain('true')
})

test('what cannot be given back for another reason is logged, and the caller learns of what failed before it', async () => {
  warn.mockClear()
  const err = new Error('cannot be given back')
  const refused = run(() => Promise.reject(new Problem('upstream_refused')), caller(), {
    giveBack: () => Promise.reject(err),
  })
  await expect(refused).rejects.toMatchObject({ status: 422 })
  expect(warn.mock.calls).toMatchObject([[{ err, organization: 'org', request: 'req' }, expect.any(String)]])
})

test('a commit that is still under way when its connection is lost is waited for, and the operation goes on', async () => {
  const { sql } = database
  await sql`create table slow (id text primary key)`
  await sql.unsafe(`
    create function slowly() returns trigger language plpgsql as 'begin perform pg_sleep(0.5); return null; end';
    create constraint trigger slowly after insert on slow deferrable initially deferred
      for each row execute function slowly()
  `)
  const proxy = await startStepProxy(database.url)
  const proxied = openDatabase(proxy.url, 'messaging', { max: 1 })
  await proxied`select 1`
  onTestFinished(async () => {
    await proxied.end({ timeout: 1 })
    proxy.close()
  })
  const begin: InlineSteps<Begun, string, { made: string }>['begin'] = async (tx, isRetry) => {
    await tx`insert into slow values (${`row${key}`})`
    return { isRetry }
  }
  const answer = run(() => Promise.resolve('made'), caller(), { begin }, { ...app, sql: proxied })
  await until(async () => expect(await sql`select from pg_stat_activity where wait_event = 'PgSleep'`).toHaveLength(1))
  proxy.reset()
  expect(bodyOf(await answer)).toContain('made')
  expect(await keyRow()).toMatchObject({ status: 201 })
})

test('a try whose process died is taken over when its lease has lapsed, and cannot answer any more', async () => {
  const { promise, resolve } = Promise.withResolvers<string>()
  const begun = Promise.withResolvers<void>()
  const died = run(() => {
    begun.resolve()
    return promise
  })
  await begun.promise
  await lapse()
  const retry = await run(({ isRetry }) => Promise.resolve(`retry ${isRetry}`))
  resolve('late')
  await expect(died).rejects.toMatchObject({ failure: 'idempotency_in_progress' })
  expect(await state()).toBe('retry true')
  expect(bodyOf(await run(() => Promise.resolve('x')))).toBe(bodyOf(retry))
})

test.each([
  ['answers', () => Promise.resolve('late')],
  ['is refused', () => Promise.reject(new Problem('resource_not_found'))],
  ['fails', () => Promise.reject(new Error('reset'))],
])('a try that was taken over and %s late changes nothing for the one that runs', async (_, end) => {
  const [died, retried] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const begin = (ended: Promise<string>) => {
    const begun = Promise.withResolvers<void>()
    const answer = run(() => {
      begun.resolve()
      return ended
    })
    return { begun: begun.promise, answer }
  }
  const late = begin(died.promise.then(end))
  await late.begun
  await lapse()
  const retry = begin(retried.promise.then(() => 'made'))
  await retry.begun
  died.resolve()
  await expect(late.answer).rejects.toThrow()
  await expect(storedAnswer(app.sql, app.sealKeys, caller())).rejects.toMatchObject({
    failure: 'idempotency_in_progress',
  })
  expect(await state()).toBe('begun again')
  retried.resolve()
  expect(bodyOf(await retry.answer)).toContain('made')
  expect(await state()).toBe('made')
})

test('of two that find a lapsed try, one takes it over', async () => {
  await run(() => Promise.reject(new Error('reset'))).catch(() => {})
  let calls = 0
  let finish = () => {}
  const finished = new Promise<void>((resolve) => {
    finish = resolve
  })
  const slow = async () => {
    calls++
    await finished
    return 'made'
  }
  const both = [run(slow), run(slow)]
  // One is refused while the other runs.
  await expect(
    Promise.any(
      both.map((one) =>
        one.then(
          () => Promise.reject(new Error('answered')),
          () => 'refused',
        ),
      ),
    ),
  ).resolves.toBe('refused')
  finish()
  const outcomes = await Promise.allSettled(both)
  expect(outcomes.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
  expect(calls).toBe(1)
})

test('who waits too long for a key that is just being taken is told that it runs, by this kind of operation and the other', async () => {
  const { promise: isTaken, resolve: taken } = Promise.withResolvers<void>()
  const { promise: isOver, resolve: over } = Promise.withResolvers<void>()
  const first = run(() => Promise.resolve('first'), caller(), {
    begin: async () => {
      taken()
      await isOver
      return { isRetry: false }
    },
  })
  await isTaken
  const others = await Promise.allSettled([
    run(() => Promise.reject(new Error('called twice'))),
    once(app, contract, caller(), () => Promise.reject(new Error('done twice'))),
  ])
  over()
  const inProgress = { reason: { failure: 'idempotency_in_progress' } }
  expect(others).toMatchObject([inProgress, inProgress])
  expect(bodyOf(await first)).toContain('first')
})

test.each([
  ['this kind of operation', (by: OnceInline) => run(() => Promise.resolve('made'), caller(), {}, by)],
  ['the other', (by: OnceInline) => once(by, contract, caller(), () => Promise.resolve({ made: 'made' }))],
])('a key that is given back just after it stood in the way is free, for %s', async (_, make) => {
  const refused = Promise.withResolvers<string>()
  const first = run(() => refused.promise)
  await until(async () => expect(await keyRow()).toBeDefined())
  const sql = new Proxy(app.sql, {
    apply(target, self, args: [TemplateStringsArray]): unknown {
      if (!args[0][0]?.includes('select fingerprint')) return Reflect.apply(target, self, args)
      refused.reject(new Problem('resource_not_found'))
      return first.catch(() => {}).then((): unknown => Reflect.apply(target, self, args))
    },
  })
  expect(bodyOf(await make({ ...app, sql }))).toContain('made')
  await expect(first).rejects.toThrow()
})

test('what fails before the call leaves nothing; without a key nothing is remembered', async () => {
  const begin = () => Promise.reject(new Problem('name_taken'))
  await expect(run(() => Promise.resolve('x'), caller(), { begin })).rejects.toMatchObject({ failure: 'name_taken' })
  expect(await keyRow()).toBeUndefined()
  await run(() => Promise.resolve('one'), caller('same', false))
  await run(() => Promise.resolve('two'), caller('same', false))
  expect([await state(), await keyRow()]).toEqual(['two', undefined])
})

test.each([
  ['this kind of operation', (asking: Caller, made: string) => run(() => Promise.resolve(made), asking)],
  ['the other', (asking: Caller, made: string) => once(app, contract, asking, () => Promise.resolve({ made }))],
])('the same key of another organization is another key, for %s', async (_, make) => {
  const [mine, theirs] = [caller(), { ...caller(), organizationId: 'another' }]
  const first = await make(mine, 'mine')
  const other = await make(theirs, 'theirs')
  expect([first, other].map((answer) => [bodyOf(answer).includes('theirs'), answer.replayed])).toEqual([
    [false, false],
    [true, false],
  ])
  expect(bodyOf(await make(mine, 'again'))).toBe(bodyOf(first))
  expect(bodyOf(await make(theirs, 'again'))).toBe(bodyOf(other))
})

test('what one request was answered with stands for its key alone', async () => {
  const [first, second] = [caller(), { ...caller(), idempotency: { key: `k${key} too`, fingerprint: 'same' } }]
  const make = (asking: Caller, made: string) => once(app, contract, asking, () => Promise.resolve({ made }))
  const answers = [await make(first, 'first'), await make(second, 'second')]
  for (const [n, asking] of [first, second].entries()) {
    const again = await make(asking, 'again')
    expect([again.replayed, bodyOf(again)]).toEqual([true, answers[n] && bodyOf(answers[n])])
  }
})

test('a key past its 24 hours is new, for this kind of operation and the other', async () => {
  const age = () =>
    database.sql`update idempotency.keys set created_at = now() - interval '25 h' where key = ${`k${key}`}`
  await run(() => Promise.reject(new Error('reset'))).catch(() => {})
  await age()
  expect(bodyOf(await run(({ isRetry }) => Promise.resolve(String(isRetry)), caller('other')))).toContain('false')
  await age()
  // Its answer was one with a secret.
  await database.sql`update idempotency.keys set sealed = true where key = ${`k${key}`}`
  const again = () => run(() => Promise.resolve('again'), caller('again'))
  expect([bodyOf(await again()), bodyOf(await again())]).toEqual(Array(2).fill(expect.stringContaining('again')))
  await age()
  expect(await storedAnswer(app.sql, app.sealKeys, caller('third'))).toBeNull()
  const byOnce = () => once(app, contract, caller('third'), () => Promise.resolve({ made: 'by once' }))
  const [first, second] = [await byOnce(), await byOnce()]
  expect([first.replayed, second.replayed]).toEqual([false, true])
  expect([bodyOf(first), bodyOf(second)]).toEqual(Array(2).fill(expect.stringContaining('by once')))
})

test("an organization's transactions leave connections to others, while its calls are under way together", async () => {
  const gate = Promise.withResolvers<void>()
  const of = (organizationId: string) => ({ ...caller('same', false), organizationId })
  let begun = 0
  const begin = async () => {
    begun++
    await gate.promise
    return { isRetry: false }
  }
  let calls = 0
  const together = Promise.withResolvers<string>()
  const call = () => {
    if (++calls === 30) together.resolve('made')
    return together.promise
  }
  const ending = Promise.withResolvers<void>()
  let ended = 0
  const finish = async () => {
    ended++
    await ending.promise
    return { made: 'made' }
  }
  const asked = Array.from({ length: 30 }, () => run(call, of('org_1'), { begin, finish }))
  await expect.poll(() => begun).toBeGreaterThan(0)
  expect(await run(() => Promise.resolve('other'), of('org_2'))).toMatchObject({ status: 201 })
  expect(begun).toBeLessThanOrEqual(2)
  gate.resolve()
  await expect.poll(() => ended).toBeGreaterThan(0)
  expect(await run(() => Promise.resolve('other'), of('org_2'))).toMatchObject({ status: 201 })
  expect(ended).toBeLessThanOrEqual(2)
  ending.resolve()
  expect(await Promise.all(asked)).toHaveLength(30)
})
