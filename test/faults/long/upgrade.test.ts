import { rmSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { freePort } from '../../free-port.ts'
import { newFolder, startStack } from '../../journeys/start-stack.ts'
import { oneEventId } from '../history/laws/one-event-id.ts'
import { plainAnswers } from '../history/laws/plain-answers.ts'
import { toldOnce } from '../history/laws/told-once.ts'
import { live } from '../load/live.ts'
import { settle, untilEnded } from '../load/settle.ts'
import { kill } from '../own-stack.ts'
import { killBeside, previousRelease, startBeside } from '../previous-release.ts'

const services = ['messaging', 'directory', 'platform', 'webhooks']

test('a release takes over what the previous one left in the middle of its work, and works beside it while instances of both are killed', async ({
  skip,
}) => {
  if (!previousRelease) return skip('UPGRADE_FROM names no checkout of the previous release.')
  const dataDir = newFolder()
  const port = { PORT: String(await freePort()) }
  const before = await startStack([], dataDir, port, previousRelease)
  onTestFinished(() => before.stop())
  const { scene, people, subscriber } = await live({ stack: before }, {}, () => sleep(20_000))
  onTestFinished(() => subscriber.close())
  // In the middle of what came last.
  await before.stop()

  const now = await startStack([], dataDir, port)
  onTestFinished(() => now.remove())
  await untilEnded(scene, people, 120_000)
  for (const law of [toldOnce, oneEventId, plainAnswers]) expect(law(scene.history)).toEqual([])

  const folder = newFolder()
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const beside = await startBeside(now, previousRelease, folder)
  onTestFinished(() => beside.stop())
  const next = await live(beside, { seed: 2 }, async () => {
    for (const service of services) {
      await killBeside(beside, service)
      await kill({ stack: now }, service)
    }
  })
  onTestFinished(() => next.subscriber.close())
  expect(await settle(next.scene, next.people, 300_000)).toEqual([])
})
