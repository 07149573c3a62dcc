import { actTogether } from '@app/test/act-together.ts'
import { randomOf } from '@app/test/faults/random.ts'
import { amount, seed } from '@app/test/fuzz/seed.ts'
import { startTwoInstances } from '@app/test/two-instances.ts'
import { expect, onTestFinished, test } from 'vitest'
import { createPayloads } from './attempts/payloads.ts'
import { startInstance, testWebhooks } from './testing/app.ts'
import { startMoodyEndpoints } from './testing/moody-endpoints.ts'
import { actAtRandom } from './testing/random-acts.ts'
import { setScene } from './testing/scene.ts'
import { settle } from './testing/settle.ts'
import { findBroken } from './testing/what-must-hold.ts'

test(
  'whatever two instances, endpoints, owners and lost connections do at once: everything settles, and is true',
  async () => {
    const { apps, sql, complaints } = await startTwoInstances('webhooks', testWebhooks, (first, secondSql) =>
      startInstance({ ...first, sql: secondSql, payloads: createPayloads() }),
    )
    const endpoints = await startMoodyEndpoints(4)
    onTestFinished(() => endpoints.close())
    const scene = await setScene({ apps, sql, endpoints }, randomOf(seed, 'scene'))
    await actTogether((random) => actAtRandom(scene, random))
    await settle(scene)
    expect(await findBroken(scene)).toEqual([])
    expect(complaints).toEqual([])
  },
  amount(60_000, 900_000),
)
