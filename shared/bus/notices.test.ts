import { testService, type TestService } from '@app/test/service.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { connectBus } from './bus.ts'
import { notice } from '../api/contract.ts'
import { hear, tell } from './notices.ts'

const changed = notice({
  subject: 'notice.directory.changed',
  summary: 'Changed',
  data: z.object({ ids: z.array(z.string()) }),
})

let app: TestService
beforeAll(async () => {
  app = await testService('messaging')
})
afterAll(() => app.close())

test('all who hear are told, and what is malformed is passed over', async () => {
  const other = await connectBus('messaging', app.natsUrl, app.log)
  const heard: string[] = []
  hear(app, changed, ({ ids }) => heard.push(`one ${ids.join()}`))
  hear({ ...app, ...other }, changed, ({ ids }) => heard.push(`other ${ids.join()}`))
  await Promise.all([app.nc.flush(), other.nc.flush()])
  app.nc.publish(changed.subject, '{"ids":7}')
  app.nc.publish(changed.subject, '{')
  tell(app, changed, { ids: ['a', 'b'] })
  await expect.poll(() => heard.toSorted()).toEqual(['one a,b', 'other a,b'])
  await other.nc.close()
})

test('nothing is thrown by telling without a connection', async () => {
  const other = await connectBus('directory', app.natsUrl, app.log)
  await other.nc.close()
  expect(() => tell(other, changed, { ids: [] })).not.toThrow()
})
