import { actTogether } from '@app/test/act-together.ts'
import { randomOf } from '@app/test/faults/random.ts'
import { amount, seed } from '@app/test/fuzz/seed.ts'
import { expect, test } from 'vitest'
import { makeMoody } from './testing/moody-platform.ts'
import { actAtRandom } from './testing/random-acts.ts'
import { setScene } from './testing/scene.ts'
import { settle } from './testing/settle.ts'
import { twoInstances } from './testing/two-instances.ts'
import { findBroken } from './testing/what-must-hold.ts'

test(
  'whatever two instances, the platform, customers, owners and lost connections do at once: everything settles, and is true',
  async () => {
    const { first: base, apps, sql, complaints } = await twoInstances()
    const platform = makeMoody(base, randomOf(seed, 'platform'))
    const scene = await setScene({ apps, base, sql, platform })
    await actTogether((random) => actAtRandom(scene, random))
    await settle(scene)
    expect(await findBroken(scene)).toEqual([])
    expect(complaints).toEqual([])
  },
  amount(60_000, 900_000),
)
