import { firstIdAt } from '@app/shared/ids.ts'
import { keepPartitions } from '@app/shared/partitions.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type TestWebhooks, testWebhooks } from '../testing/app.ts'
import { partitions, sweepDead } from './retention.ts'

let webhooks: TestWebhooks
beforeAll(async () => {
  webhooks = await testWebhooks()
})
afterAll(() => webhooks.close())

const dayMs = 24 * 60 * 60 * 1000

test('a delivery that was given up is dead for as long as it is kept', async () => {
  const { sql, organizationId } = webhooks
  const oldestDay = (Math.floor(Date.now() / dayMs) - 90) * dayMs
  const keepAll = async (now: number) => {
    for (const table of partitions) await keepPartitions(sql, table, now)
  }
  await keepAll(oldestDay)
  const ids = [oldestDay - 1, oldestDay].map((at) => firstIdAt('wbd', new Date(at)))
  for (const table of ['deliveries', 'dead_deliveries']) {
    await sql`
      insert into ${sql(table)} (id, organization_id, subscription_id, event_type ${table === 'deliveries' ? sql`, event_id` : sql``})
      select id, ${organizationId}, 'wbs_x', 'message.received' ${table === 'deliveries' ? sql`, id` : sql``}
      from unnest(${ids}::text[]) id
    `
  }
  await sql`insert into delivered_types (organization_id, event_type) values (${organizationId}, 'message.received')`
  await keepAll(Date.now())
  expect(await sweepDead(sql)).toBe(1)
  expect(await webhooks.deliveries()).toMatchObject([{ id: ids[1], status: 'dead' }])
})
