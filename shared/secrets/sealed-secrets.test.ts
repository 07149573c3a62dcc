import { randomBytes } from 'node:crypto'
import { Registry } from 'prom-client'
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { createTestDatabase, type TestDatabase } from '@app/test/database.ts'
import { rowsRead } from '@app/test/rows-read.ts'
import { systemCaller } from '../bus/ask.ts'
import { sealedAnswers } from '../idempotency/idempotency.ts'
import { openDatabase, type Sql } from '../database/database.ts'
import { createLog } from '../service/log.ts'
import { seal, unseal } from './seal.ts'
import type { Place } from '../contracts/secrets.ts'
import { resealBatch } from './reseal-secrets.ts'
import { sealedColumn } from './sealed-columns.ts'
import { watchSecrets } from './sealed-secrets.ts'

const bytes = new Map(['k1', 'k2', 'k3'].map((id) => [id, randomBytes(32)]))
const ring = (...ids: string[]) => ({
  current: ids[0] ?? '',
  byId: new Map(ids.map((id) => [id, bytes.get(id) ?? Buffer.alloc(32)])),
})
const jewels = sealedColumn('sealed', {
  table: 'jewels',
  rowKey: ['owner', 'id'],
  boundBy: 'id',
  boundTo: ([id]) => `jewel:${id}`,
})
let database: TestDatabase

beforeAll(async () => {
  database = await createTestDatabase('platform')
  await database.sql`create table jewels (owner text, id text, sealed text, primary key (owner, id))`
  await database.sql`create index on jewels (split_part(sealed, '.', 1), owner, id) where sealed is not null`
})
afterAll(() => database.drop())
beforeEach(async () => {
  await database.sql`delete from jewels`
  await database.sql`delete from idempotency.keys`
})

/** A service that runs with these keys. */
const running = (...ids: string[]) => runningWith({}, ...ids)

function runningWith({ sql = database.sql, column = jewels }, ...ids: string[]) {
  const metrics = new Registry()
  const log = createLog('test', 'silent')
  const told = vi.spyOn(log, 'error')
  const app = {
    sql,
    log,
    probes: { metrics } as Parameters<typeof watchSecrets>[0]['probes'],
    sealKeys: ring(...ids),
  }
  const { countSecrets, resealSecrets } = watchSecrets(app, [column, sealedAnswers])
  const step = (after: Place | null = null, current = ids[0] ?? '') =>
    resealSecrets(app, { params: {}, query: {}, body: { current, after } }, systemCaller()) as Promise<{
      resealed: number
      unopened: number
      next: Place | null
    }>
  return {
    metrics,
    told,
    step,
    count: async () =>
      Object.values(await countSecrets(app, { params: {}, query: {}, body: undefined }, systemCaller())).flat(),
    async resealAll() {
      const all = { resealed: 0, unopened: 0 }
      for (let after: Place | null = null; ;) {
        const { next, resealed, unopened } = await step(after)
        all.resealed += resealed
        all.unopened += unopened
        if (!next) return all
        after = next
      }
    },
  }
}

const sealedBy = (key: string, id: string, text = `secret of ${id}`) => seal(ring(key), text, `jewel:${id}`)

async function keep(...rows: { id: string; sealed: string | null }[]) {
  await database.sql`insert into jewels ${database.sql(rows.map((row) => ({ owner: 'o', ...row })))}`
}

const stored = () => database.sql<{ id: string; sealed: string }[]>`select id, sealed from jewels order by id`
const name = (n: number) => `j${String(n).padStart(4, '0')}`

test('every secret of an old key is sealed again, in batches, and opens; what is current stays as it is', async () => {
  const current = sealedBy('k2', 'now')
  await keep(
    ...Array.from({ length: 450 }, (_, n) => ({ id: name(n), sealed: sealedBy(n % 3 ? 'k1' : 'k3', name(n)) })),
    { id: 'none', sealed: null },
    { id: 'now', sealed: current },
  )
  const service = running('k2', 'k1', 'k3')
  expect(await service.step()).toMatchObject({ resealed: 200, next: { table: 'jewels', key: 'k1' } })
  expect(await service.resealAll()).toEqual({ resealed: 250, unopened: 0 })
  for (const { id, sealed } of await stored()) {
    if (sealed !== null) expect(unseal(ring('k2'), sealed, `jewel:${id}`)).toMatch(/^secret of /)
  }
  expect((await stored()).find(({ id }) => id === 'now')?.sealed).toBe(current)
  expect(await service.resealAll()).toEqual({ resealed: 0, unopened: 0 })
})

test('a batch reads its own rows, however many are left', async () => {
  await database.sql`
    insert into jewels select 'o', n::text, ${sealedBy('k1', 'elsewhere')} from generate_series(1, 3000) n
  `
  await database.sql`analyze jewels`
  await database.sql.begin(async (tx) => {
    const before = await rowsRead(tx, ['jewels'])
    const app = { sql: tx as unknown as Sql, log: createLog('test', 'silent'), sealKeys: ring('k2', 'k1') }
    expect(await resealBatch(app, [jewels], null)).toMatchObject({ unopened: 200 })
    expect((await rowsRead(tx, ['jewels'])) - before).toBeLessThan(300)
  })
})

test('stored answers that hold a secret are sealed again, and others are not touched', async () => {
  const { boundTo } = sealedAnswers
  const answer = seal(ring('k1'), '{"secret":"ü"}', boundTo(['org_1', 'a key: ü']))
  await database.sql`
    insert into idempotency.keys (organization_id, key, fingerprint, status, answer, sealed) values
      ('org_1', 'a key: ü', 'f', 201, ${Buffer.from(answer)}, true), ('org_1', 'plain', 'f', 201, ${Buffer.from('k1.plain')}, false)
  `
  expect(await running('k2', 'k1').resealAll()).toEqual({ resealed: 1, unopened: 0 })
  const rows = await database.sql<{ answer: Uint8Array }[]>`select answer from idempotency.keys order by key`
  const [again = '', plain] = rows.map((row) => Buffer.from(row.answer).toString())
  expect(unseal(ring('k2'), again, boundTo(['org_1', 'a key: ü']))).toBe('{"secret":"ü"}')
  expect(plain).toBe('k1.plain')
})

test('a row that changes between the reading and the writing keeps its new value', async () => {
  await keep({ id: 'a', sealed: sealedBy('k1', 'a') }, { id: 'b', sealed: sealedBy('k1', 'b') })
  const newer = sealedBy('k1', 'a', 'a newer one')
  // On its one connection this change comes after the reading and before the writing.
  const sql = openDatabase(database.url, 'platform', { max: 1 })
  const changes: Promise<unknown>[] = []
  const boundTo = ([id = '']: string[]) => {
    if (id === 'a') changes.push(sql`update jewels set sealed = ${newer} where id = 'a'`.execute())
    return `jewel:${id}`
  }
  const { step } = runningWith({ sql, column: { ...jewels, boundTo } }, 'k2', 'k1')
  expect(await step()).toMatchObject({ resealed: 1, unopened: 0 })
  await Promise.all(changes)
  await sql.end()
  expect((await stored()).map(({ sealed }) => sealed.slice(0, 2))).toEqual(['k1', 'k2'])
  expect((await stored())[0]?.sealed).toBe(newer)
})

test('a row that somebody has locked is left, and found by the next run', async () => {
  await keep({ id: 'a', sealed: sealedBy('k1', 'a') }, { id: 'b', sealed: sealedBy('k1', 'b') })
  const service = running('k2', 'k1')
  const newer = sealedBy('k1', 'a', 'a newer one')
  const { promise: locked, resolve: lock } = Promise.withResolvers<void>()
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  const writing = database.sql.begin(async (tx) => {
    await tx`update jewels set sealed = ${newer} where id = 'a'`
    lock()
    await released
  })
  await locked
  expect(await service.step()).toMatchObject({ resealed: 1 })
  release()
  await writing
  expect((await stored())[0]?.sealed).toBe(newer)
  expect(await service.resealAll()).toMatchObject({ resealed: 1 })
  expect(unseal(ring('k2'), (await stored())[0]?.sealed ?? '', 'jewel:a')).toBe('a newer one')
})

test('two that seal again at once do it once', async () => {
  await keep(...Array.from({ length: 150 }, (_, n) => ({ id: name(n), sealed: sealedBy('k1', name(n)) })))
  const [one, other] = [running('k2', 'k1'), running('k2', 'k1')]
  const done = await Promise.all([one.resealAll(), other.resealAll()])
  const left = await one.resealAll()
  expect([...done, left].reduce((sum, { resealed }) => sum + resealed, 0)).toBe(150)
  for (const { id, sealed } of await stored()) expect(unseal(ring('k2'), sealed, `jewel:${id}`)).toBe(`secret of ${id}`)
})

test('one that was moved or changed stays, is counted, and holds no other, of its key or the next', async () => {
  await keep(...Array.from({ length: 210 }, (_, n) => ({ id: name(n), sealed: sealedBy('k1', 'elsewhere') })), {
    id: 'k',
    sealed: sealedBy('k1', 'k'),
  })
  await keep({ id: 'a', sealed: sealedBy('k3', 'a') })
  const service = running('k2', 'k1', 'k3')
  expect(await service.resealAll()).toEqual({ resealed: 2, unopened: 210 })
  expect(await service.count()).toContainEqual({ table: 'jewels', key: 'k1', state: 'old', count: 210 })
})

test('a key that is missing is told of in the log, as a count and as a gauge, and its secrets are left alone', async () => {
  await keep(
    { id: 'a', sealed: sealedBy('k1', 'a') },
    { id: 'b', sealed: sealedBy('k2', 'b') },
    { id: 'c', sealed: sealedBy('k3', 'c') },
  )
  const service = running('k2', 'k1')
  const missing = { table: 'jewels', key: 'k3', count: 1 }
  await vi.waitFor(() => expect(service.told).toHaveBeenCalledExactlyOnceWith(missing, expect.any(String)))
  expect(await service.resealAll()).toEqual({ resealed: 1, unopened: 0 })
  expect(await service.count()).toEqual([
    { table: 'jewels', key: 'k2', state: 'current', count: 2 },
    { table: 'jewels', key: 'k3', state: 'missing', count: 1 },
  ])
  expect(await service.metrics.metrics()).toContain('svc_sealed_secrets{table="jewels",key="k3",state="missing"} 1')
  const [, , c] = await stored()
  expect(unseal(ring('k3'), c?.sealed ?? '', 'jewel:c')).toBe('secret of c')
})

test('an instance that seals with another key than is meant refuses, so that two never seal against each other', async () => {
  await keep({ id: 'a', sealed: sealedBy('k2', 'a') })
  await expect(running('k1', 'k2').step(null, 'k2')).rejects.toMatchObject({ failure: 'invalid_field_value' })
})
