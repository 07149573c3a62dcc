import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { adminOf } from '../../journeys/admin.ts'
import { newFolder, ofEach, startStack } from '../../journeys/start-stack.ts'
import { startPrivateServers } from '../../servers.ts'
import { oneEventId } from '../history/laws/one-event-id.ts'
import { plainAnswers } from '../history/laws/plain-answers.ts'
import { toldOnce } from '../history/laws/told-once.ts'
import { live } from '../load/live.ts'
import { settle, untilEnded } from '../load/settle.ts'
import { startArchivedPostgres } from '../postgres-archive.ts'
import { prepareRestored } from '../prepare-restored.ts'

const folder = newFolder()
const replicas = ofEach(2)
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Between the clock of a client and a commit. */
const unsureMs = 2_000

test('pgBackRest makes a backup under load, and a moment of the load is restored: nothing goes out twice, what was accepted before is there and ends, and every law holds again', async ({
  skip,
}) => {
  const archived = await startArchivedPostgres(join(folder, 'archived'))
  if (!archived) return skip('There is no Postgres or pgBackRest on this machine.')
  onTestFinished(() => archived.stop())
  const servers = await startPrivateServers(join(folder, 'servers'), ['redis', 'nats'])
  onTestFinished(() => servers.stop())
  mkdirSync(join(folder, 'stack'))
  const given = { DATABASE_URL: archived.url, REDIS_URL: servers.redisUrl, NATS_URL: servers.natsUrl }
  const start = () => startStack(['--replicas', replicas], join(folder, 'stack'), given)
  const first = await start()
  onTestFinished(() => first.stop())

  let moment = new Date()
  const life = await live({ stack: first }, { seconds: 30 }, async ({ platform, subscriber }) => {
    await sleep(3_000)
    await archived.backUp()
    await sleep(5_000)
    // Sends that are tried again in some seconds, and deliveries that are not answered yet.
    await platform.layFault({ type: 'text' }, { kind: 'error', code: 131016 }, 12)
    subscriber.trouble.delayMs = 4_000
    await sleep(2_000)
    moment = new Date()
    subscriber.trouble.delayMs = 0
  })
  onTestFinished(() => life.subscriber.close())
  const { scene, people } = life
  expect(await settle(scene, people, 120_000)).toEqual([])
  const { accepted, deliveries } = scene.history
  const before = accepted.filter(({ acceptedAt }) => acceptedAt < moment.getTime() - unsureMs).map(({ id }) => id)
  const after = accepted.filter(({ startedAt }) => startedAt > moment.getTime() + unsureMs).map(({ id }) => id)
  const told = deliveries.length

  await first.stop()
  await archived.restoreTo(moment)
  const waited = await prepareRestored({ databaseUrl: archived.url, natsUrl: servers.natsUrl })
  const again = await start()
  onTestFinished(() => again.stop())
  const since = new Date(moment.getTime() - 60 * 60_000).toISOString()
  for (const what of ['events', 'callbacks']) await adminOf(again.dataDir)(what, 'redrive', '--since', since)

  scene.history.endings.clear()
  await untilEnded(scene, people, 300_000)
  const { endings, upstream } = scene.history
  console.log(
    `${before.length} sends accepted before the moment, ${after.length} after it, ${waited} waited at it, ${deliveries.length - told} deliveries came again`,
  )
  expect([before.length > 0, after.length > 0]).toEqual([true, true])
  expect(before.filter((id) => !endings.has(id))).toEqual([])
  expect(after.filter((id) => endings.has(id))).toEqual([])
  // All had gone out before, and the platform was restarted too: it remembers what came since.
  expect(upstream).toEqual([])
  expect(waited).toBeGreaterThan(0)
  const failed = [...endings.values()].filter(({ status }) => status === 'failed')
  expect(failed.filter(({ code }) => code !== 'delivery_unknown')).toEqual([])
  expect(failed.length).toBeLessThanOrEqual(waited)
  for (const law of [toldOnce, oneEventId, plainAnswers]) expect(law(scene.history)).toEqual([])

  const next = await live({ stack: again }, { seed: 2, seconds: 15 }, () => sleep(5_000))
  onTestFinished(() => next.subscriber.close())
  expect(await settle(next.scene, next.people, 120_000)).toEqual([])
})
