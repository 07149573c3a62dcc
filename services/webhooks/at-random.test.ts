import { ownSession } from '@app/shared/database/own-session.ts'
import { actTogether } from '@app/test/act-together.ts'
import { listenIn } from '@app/test/complaints.ts'
import { randomOf } from '@app/test/faults/random.ts'
import { amount, seed } from '@app/test/fuzz/seed.ts'
import { testService } from '@app/test/service.ts'
import { expect, onTestFinished, test } from 'vitest'
import { testWebhooks } from './testing/app.ts'
import { startMoodyEndpoints } from './testing/moody-endpoints.ts'
import { actAtRandom } from './testing/random-acts.ts'
import { setScene } from './testing/scene.ts'
import { startSecondInstance } from './testing/second-instance.ts'
import { settle } from './testing/settle.ts'
import { findBroken } from './testing/what-must-hold.ts'

test(
  'whatever two instances, endpoints, owners and lost connections do at once: everything settles, and is true',
  async () => {
    const service = await testService('webhooks')
    const { log, complaints } = listenIn(service.log)
    const first = await testWebhooks({ ...service, log })
    onTestFinished(() => first.close())
    const second = startSecondInstance(first, service.databaseUrl)
    onTestFinished(() => second.stop())
    const endpoints = await startMoodyEndpoints(4)
    onTestFinished(() => endpoints.close())
    const sql = ownSession(service.sql, {})
    onTestFinished(() => sql.end())

    const scene = await setScene({ apps: [first, second.app], sql, endpoints }, randomOf(seed, 'scene'))
    await actTogether((random) => actAtRandom(scene, random))
    await settle(scene)
    expect(await findBroken(scene)).toEqual([])
    expect(complaints).toEqual([])
  },
  amount(60_000, 300_000),
)
