import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { newFolder, ofEach, startStack } from '../../journeys/start-stack.ts'
import { startPrivateServers } from '../../servers.ts'
import { live } from '../load/live.ts'
import { settle } from '../load/settle.ts'
import { tellFailed } from '../load/tell-failed.ts'
import { startPatroni } from '../patroni.ts'

const folder = newFolder()
const replicas = ofEach(2)
afterAll(() => rmSync(folder, { recursive: true, force: true }))

test('three servers under Patroni, named by one DATABASE_URL: a switch, a death and a freeze of the primary under load, every law holds', async ({
  skip,
}) => {
  const cluster = await startPatroni(join(folder, 'patroni'))
  if (!cluster) return skip('There is no Patroni, etcd or Postgres on this machine.')
  onTestFinished(() => cluster.stop())
  const servers = await startPrivateServers(join(folder, 'servers'), ['redis', 'nats'])
  onTestFinished(() => servers.stop())
  mkdirSync(join(folder, 'stack'))
  const given = { DATABASE_URL: cluster.url, REDIS_URL: servers.redisUrl, NATS_URL: servers.natsUrl }
  const stack = await startStack(['--replicas', replicas], join(folder, 'stack'), given)
  onTestFinished(() => stack.stop())

  const life = await live({ stack }, { seconds: 30 }, async () => {
    await sleep(5_000)
    await cluster.switchOver()
    await cluster.whole()
    const killed = await cluster.leader()
    await cluster.kill(killed)
    const next = await cluster.leader(killed)
    cluster.start(killed)
    await cluster.whole()
    const thaw = cluster.freeze(next)
    await cluster.leader(next)
    await sleep(10_000)
    thaw()
    await cluster.whole()
  })
  onTestFinished(() => life.subscriber.close())
  expect(tellFailed(life.scene.history).length).toBeGreaterThan(0)
  expect(await settle(life.scene, life.people, 180_000)).toEqual([])
})
