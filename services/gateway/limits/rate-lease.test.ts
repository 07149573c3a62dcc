import { once } from 'node:events'
import { mkdtempSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLog } from '@app/shared/service/log.ts'
import { newId } from '@app/shared/values/ids.ts'
import { freezeFor } from '@app/test/freeze.ts'
import { listen } from '@app/test/listen.ts'
import { startPrivateServers } from '@app/test/servers.ts'
import { Redis } from 'ioredis'
import { expect, inject, onTestFinished, test, vi } from 'vitest'
import { budgetsIn, connectRedis, type SharedBudgets } from './rate-lease.ts'

/** An address, as of a proxy or a name, that leads to another server one day. */
async function listenFor(target: { port: number; clients?: Socket[] }) {
  const server = createServer((client) => {
    const socket = connect(target.port, '127.0.0.1')
    target.clients?.push(client)
    client.on('error', () => socket.destroy()).pipe(socket)
    socket.on('error', () => client.destroy()).pipe(client)
    client.on('close', () => socket.destroy())
  })
  onTestFinished(() => void server.close())
  return `redis://127.0.0.1:${await listen(server)}`
}

/** Six of a minute's 60, or why there are none. */
const leaseOf = (budgets: SharedBudgets) => () =>
  budgets.lease(`rate:${newId('key')}:read`, 60, 1).then(({ tokens }) => tokens, String)

test('after a failover the new primary is found, although the old one, a replica now, keeps its connections', async () => {
  const servers = await startPrivateServers(mkdtempSync(join(tmpdir(), 'redis-')), ['redis'])
  onTestFinished(servers.stop)
  const [from, to] = [new URL(servers.redisUrl), new URL(inject('redisUrl'))]
  const target = { port: Number(from.port) }
  const redis = connectRedis(await listenFor(target), createLog('test', 'silent'))
  const old = new Redis(from.href)
  onTestFinished(() => [redis, old].forEach((one) => one.disconnect()))
  const budgets = budgetsIn(redis)
  const lease = leaseOf(budgets)
  await expect.poll(lease, { timeout: 5_000 }).toBe(6)
  await old.replicaof(to.hostname, to.port)
  target.port = Number(to.port)
  await expect.poll(lease, { timeout: 5_000 }).toBe(6)
})

test('a user of Redis who may do nothing else is enough, and costs no line beside the log', async () => {
  const beside = vi.spyOn(console, 'warn')
  onTestFinished(() => beside.mockRestore())
  const admin = new Redis(inject('redisUrl'))
  const name = newId('usr')
  const rights = '~rate:* -@all +eval +evalsha +get +set +time +ping'
  await admin.acl('SETUSER', name, 'on', '>word', ...rights.split(' '))
  onTestFinished(async () => {
    await admin.acl('DELUSER', name)
    admin.disconnect()
  })
  const url = new URL(inject('redisUrl'))
  Object.assign(url, { username: name, password: 'word' })
  const redis = connectRedis(url.href, createLog('test', 'silent'))
  onTestFinished(() => redis.disconnect())
  const budgets = budgetsIn(redis)
  const lease = leaseOf(budgets)
  await expect.poll(lease, { timeout: 5_000 }).toBe(6)
  await budgets.ping()
  expect(beside).not.toHaveBeenCalled()
})

test('what Redis answered in time counts, however late this process comes to read it', async () => {
  const redis = connectRedis(inject('redisUrl'), createLog('test', 'silent'))
  onTestFinished(() => redis.disconnect())
  await once(redis, 'ready')
  const budgets = budgetsIn(redis)
  await budgets.lease(newId('key'), 60, 1)
  const answer = budgets.lease(newId('key'), 60, 1)
  freezeFor(200)
  expect(await answer).toMatchObject({ tokens: 6 })
})

test('a connection that says nothing from the beginning, or no more, is given up for another', async () => {
  const silent = createServer((client) => void client.on('error', () => {}).resume())
  onTestFinished(() => void silent.close())
  const clients: Socket[] = []
  const target = { port: await listen(silent), clients }
  const redis = connectRedis(await listenFor(target), createLog('test', 'silent'), 300)
  onTestFinished(() => redis.disconnect())
  const budgets = budgetsIn(redis)
  const lease = leaseOf(budgets)
  await expect.poll(() => clients).toHaveLength(1)
  target.port = Number(new URL(inject('redisUrl')).port)
  await expect.poll(lease, { timeout: 5_000 }).toBe(6)
  // What is asked on it goes nowhere.
  for (const client of clients) client.unpipe()
  await expect(budgets.ping()).rejects.toThrow('no answer within')
  await expect.poll(lease, { timeout: 5_000 }).toBe(6)
})
