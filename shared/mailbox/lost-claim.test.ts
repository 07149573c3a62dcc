import { steppedService, type SteppedService } from '@app/test/service.ts'
import { until } from '@app/test/until.ts'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { openDatabase } from '../database/database.ts'
import { type Mailbox, startMailbox } from './mailbox.ts'

let app: SteppedService
let mailbox: Mailbox
const worked: string[] = []
beforeAll(async () => {
  app = await steppedService('messaging')
  await app.sql`create table trial_lanes (like callback_lanes including all)`
  mailbox = startMailbox<{ laneId: string }, true>(app, {
    lanes: 'trial_lanes',
    slots: 10,
    capacity: () => 1,
    refill: false,
    next: (_tx, wants) => Promise.resolve(wants.map(({ lane }) => ({ laneId: lane.id }))),
    work: ({ laneId }) => Promise.resolve(worked.push(laneId) > 0 || null),
    settle: () => Promise.resolve([]),
  })
})
afterAll(async () => {
  await mailbox.stop()
  await app.close()
})

test('a connection that is lost at any step of a claim, before it or after it, makes no lane wait for its lease', async () => {
  const direct = openDatabase(app.databaseUrl, 'messaging', { max: 1 })
  onTestFinished(() => direct.end())
  for (const when of ['before', 'after'] as const) {
    for (let at = 1; at <= 8; at++) {
      const lane = `${when} ${at}`
      const { lost } = app.steps.count({ at, when })
      await direct`insert into trial_lanes (id, grp, due_at) values (${lane}, 'group', now())`
      mailbox.wake()
      await lost
      app.steps.count()
      await until(() => expect(worked).toContain(lane), 5_000)
    }
  }
})
