import { until } from '@app/test/until.ts'
import { expect } from 'vitest'
import { hurry } from './random-acts.ts'
import { changeNumber, type Scene, tellWritten } from './scene.ts'

/** The platform is well and has told everything, all numbers may send, and nothing has to wait: then nothing is left to do. */
export async function settle(scene: Scene): Promise<void> {
  scene.platform.calm()
  const [app] = scene.apps
  for (const tenant of scene.tenants) {
    await changeNumber(scene, tenant, { refusal: null })
    for (const written of tenant.written) if (app && !written.isTold) await tellWritten(app, tenant, written)
  }
  await until(async () => {
    await hurry(scene)
    expect(await leftOf(scene)).toEqual({ sends: [], items: [], copies: [], lanes: [], busy: [0, 0] })
  }, 30_000)
}

async function leftOf({ sql, apps }: Scene) {
  const lanes = await Promise.all(
    ['send_lanes', 'callback_lanes', 'media_lanes'].map(
      (table) =>
        sql`select to_jsonb(l) as lane from ${sql(table)} l where held_until > now() or due_at is not null limit 2`,
    ),
  )
  return {
    sends: [...(await sql`select to_jsonb(s) as send from sends s order by seq limit 2`)],
    items: [...(await sql`select to_jsonb(i) as item from callback_items i order by seq limit 2`)],
    copies: [...(await sql`select to_jsonb(c) as copy from media_copies c order by seq limit 2`)],
    lanes: lanes.flatMap((rows) => [...rows]),
    busy: apps.map(({ dispatcher }) => dispatcher.busy()),
  }
}
