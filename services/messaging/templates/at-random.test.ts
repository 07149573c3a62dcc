import { actTogether } from '@app/test/act-together.ts'
import { randomOf } from '@app/test/faults/random.ts'
import { amount, seed } from '@app/test/fuzz/seed.ts'
import { expect, onTestFinished, test } from 'vitest'
import { upstreamAt } from '../testing/app.ts'
import { startMoodyTemplates } from '../testing/moody-templates.ts'
import { actOnTemplates } from '../testing/template-acts.ts'
import { settleTemplates } from '../testing/template-laws.ts'
import { setTemplateScene } from '../testing/template-scene.ts'
import { twoInstances } from '../testing/two-instances.ts'

test(
  'whatever two instances, the platform, owners and lost connections do to templates at once: in the end they are as the platform has them',
  async () => {
    const { first: base, apps: instances, sql, complaints } = await twoInstances()
    const platform = await startMoodyTemplates(base, randomOf(seed, 'platform'))
    onTestFinished(platform.stop)
    const upstream = upstreamAt(platform.url)
    onTestFinished(() => upstream.close())
    const apps = instances.map((app) => ({ ...app, upstream }))
    const scene = await setTemplateScene({ apps, sql, platform }, base)
    await actTogether((random) => actOnTemplates(scene, random))
    expect(await settleTemplates(scene)).toEqual([])
    expect(complaints).toEqual([])
  },
  amount(60_000, 900_000),
)
