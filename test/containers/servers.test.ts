import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { connect } from 'node:net'
import { networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import { once } from 'node:events'
import { nats } from '@app/deploy/servers/nats.ts'
import { postgres as postgresKind } from '@app/deploy/servers/postgres.ts'
import { redis } from '@app/deploy/servers/redis.ts'
import { withBus } from '@app/deploy/stack/bus.ts'
import postgres from 'postgres'
import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { until } from '../until.ts'
import { docker } from './docker.ts'

const dataDir = mkdtempSync(join(tmpdir(), 'servers-'))
const place = { dataDir, watcher: {} }
const isRoot = process.getuid?.() === 0

// What they are tested for is an engine on this machine, wherever the tests themselves run.
beforeEach(() => void vi.stubEnv('TESTCONTAINERS_HOST_OVERRIDE', '127.0.0.1'))
afterEach(() => void vi.unstubAllEnvs())
// Whoever is not root could not delete what belongs to others.
afterAll(() => rmSync(dataDir, { recursive: true }))

const containerAt = (url: string) => docker('ps', '--quiet', '--filter', `publish=${new URL(url).port}`)

async function answersAt(host: string, url: string) {
  const socket = connect({ host, port: Number(new URL(url).port) })
  const answers = once(socket, 'connect').then(
    () => true,
    () => false,
  )
  return answers.finally(() => socket.destroy())
}

describe.each([postgresKind, redis, nats])(
  '$title that `npm start` has Docker run',
  ({ name, startContainer, check }) => {
    test('is there for this machine alone', async () => {
      const { url, stop } = await startContainer(place)
      const others = Object.values(networkInterfaces()).flatMap((addresses = []) =>
        addresses.filter(({ internal, family }) => !internal && family === 'IPv4'),
      )
      expect(others).not.toEqual([])
      expect(await answersAt('127.0.0.1', url)).toBe(true)
      for (const { address } of others) expect(await answersAt(address, url)).toBe(false)
      await stop()
      expect(await containerAt(url)).toBe('')
    })

    test('is started again when it was killed', async () => {
      const { url, stop } = await startContainer(place)
      await docker('kill', await containerAt(url))
      await expect(check(url)).rejects.toThrow()
      await until(() => check(url), 60_000)
      await stop()
    })

    test.skipIf(isRoot)('leaves files that its user can delete', async () => {
      const { stop } = await startContainer(place)
      await stop()
      const folder = join(dataDir, `${name}-container`)
      const owners = ['', ...readdirSync(folder, { recursive: true, encoding: 'utf8' })].map(
        (path) => statSync(join(folder, path)).uid,
      )
      expect(new Set(owners)).toEqual(new Set([process.getuid?.()]))
    })
  },
)

test('a nats-server that Docker runs reserves what the stream asks for, however little of the disk is free', async () => {
  const { url, stop } = await nats.startContainer(place)
  await withBus({ natsUrl: url }, async ({ nc }) => {
    const { streams } = await nc.jetstreamManager()
    const add = (name: string, gibibytes: number) =>
      streams.add({ name, subjects: [name], max_bytes: gibibytes * 1024 ** 3 })
    await add('large', 18)
    // By itself it would take more of a disk that has room, and less of one that has not.
    await expect(add('larger', 3)).rejects.toThrow('insufficient storage')
  })
  await stop()
})

test('what is committed outlives the container', async () => {
  const first = await postgresKind.startContainer(place)
  await asked(first.url, (sql) => sql`create table kept as select 42 as answer`)
  await first.stop()
  const second = await postgresKind.startContainer(place)
  expect(second.url).toBe(first.url)
  expect(await asked(second.url, (sql) => sql`select answer from kept`)).toEqual([{ answer: 42 }])
  await second.stop()
})

async function asked<T>(url: string, run: (sql: postgres.Sql) => Promise<T>) {
  const sql = postgres(url, { max: 1, onnotice: () => {} })
  try {
    return await run(sql)
  } finally {
    await sql.end()
  }
}
