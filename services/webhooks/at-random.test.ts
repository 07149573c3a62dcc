import { tookTooLong } from '@app/shared/database/database.ts'
import { ownSession } from '@app/shared/database/own-session.ts'
import { randomOf } from '@app/test/faults/random.ts'
import { amount, seed } from '@app/test/fuzz/seed.ts'
import { type TestService, testService } from '@app/test/service.ts'
import { expect, onTestFinished, test } from 'vitest'
import { isDeadlock, testWebhooks } from './testing/app.ts'
import { startMoodyEndpoints } from './testing/moody-endpoints.ts'
import { actAtRandom } from './testing/random-acts.ts'
import { setScene } from './testing/scene.ts'
import { startSecondInstance } from './testing/second-instance.ts'
import { settle } from './testing/settle.ts'
import { findBroken } from './testing/what-must-hold.ts'

/** Who acts at a time, and how often each. */
const actors = 6
const steps = amount(60, 400)

/**
 * What the instances complain of: errors, but for what a busy machine had no time for, and deadlocks. Connections that were ended
 * are no reason to.
 */
function listening(log: TestService['log']) {
  const complaints: unknown[] = []
  const own = log.child({})
  own.error = (line: unknown) => void (tookTooLong(errorOf(line)) || complaints.push(line))
  own.warn = (line: unknown) => void (isDeadlock(errorOf(line)) && complaints.push(line))
  return { log: own, complaints }
}

const errorOf = (line: unknown) => (typeof line === 'object' && line !== null && 'err' in line ? line.err : undefined)

test(
  'whatever two instances, endpoints, owners and lost connections do at once: everything settles, and is true',
  async () => {
    const service = await testService('webhooks')
    const { log, complaints } = listening(service.log)
    const first = await testWebhooks({ ...service, log })
    onTestFinished(() => first.close())
    const second = startSecondInstance(first, service.databaseUrl)
    onTestFinished(() => second.stop())
    const endpoints = await startMoodyEndpoints(4)
    onTestFinished(() => endpoints.close())
    const sql = ownSession(service.sql, {})
    onTestFinished(() => sql.end())

    const scene = await setScene({ apps: [first, second.app], sql, endpoints }, randomOf(seed, 'scene'))
    await Promise.all(Array.from({ length: actors }, (_, n) => actAtRandom(scene, randomOf(seed, `actor ${n}`), steps)))
    await settle(scene)
    expect(await findBroken(scene)).toEqual([])
    expect(complaints).toEqual([])
  },
  amount(60_000, 300_000),
)
