import { ownSession } from '@app/shared/database/own-session.ts'
import { listenIn } from '@app/test/complaints.ts'
import { randomOf } from '@app/test/faults/random.ts'
import { amount, seed } from '@app/test/fuzz/seed.ts'
import { testService } from '@app/test/service.ts'
import { expect, onTestFinished, test } from 'vitest'
import { testMessaging, upstreamAt } from '../testing/app.ts'
import { startMoodyTemplates } from '../testing/moody-templates.ts'
import { startSecondInstance } from '../testing/second-instance.ts'
import { actOnTemplates } from '../testing/template-acts.ts'
import { settleTemplates } from '../testing/template-laws.ts'
import { setTemplateScene } from '../testing/template-scene.ts'

/** Who acts at a time, and how often each. */
const actors = 6
const steps = amount(60, 400)

test(
  'whatever two instances, the platform, owners and lost connections do to templates at once: in the end they are as the platform has them',
  async () => {
    const service = await testService('messaging')
    const { log, complaints } = listenIn(service.log)
    const base = await testMessaging({ ...service, log })
    onTestFinished(() => base.close())
    const second = startSecondInstance(base, service.databaseUrl)
    onTestFinished(() => second.stop())
    const sql = ownSession(service.sql, {})
    onTestFinished(() => sql.end())
    const platform = await startMoodyTemplates(base, randomOf(seed, 'platform'))
    onTestFinished(platform.stop)
    const upstream = upstreamAt(platform.url)
    onTestFinished(() => upstream.close())
    const apps = [base, second.app].map((app) => ({ ...app, upstream }))
    const scene = await setTemplateScene({ apps, sql, platform }, base)
    await Promise.all(
      Array.from({ length: actors }, (_, n) => actOnTemplates(scene, randomOf(seed, `actor ${n}`), steps)),
    )
    expect(await settleTemplates(scene)).toEqual([])
    expect(complaints).toEqual([])
  },
  amount(60_000, 300_000),
)
