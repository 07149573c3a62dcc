import { expect, test } from 'vitest'
import type { App } from '../app.ts'
import { createPayloads } from '../attempts/payloads.ts'
import { createReach } from './reach.ts'
import type { EventRow } from './record-events.ts'
import { createRecorder } from './recorder.ts'

const rowsOf = (organization_id: string, count: number, bytes = 2): EventRow[] =>
  Array.from({ length: count }, (_, n) => ({
    head: {
      subject: 'event.messaging.something-happened',
      organization_id,
      event_id: `evt_${n}`,
      type: 'message.received',
      source: 'svc',
      phone: null,
      line: null,
      except: null,
      at: '2026-11-22T12:00:00.000Z',
      trace: null,
      id_time: 'wbd_01KAAAAAAA',
    },
    payload: Buffer.alloc(bytes),
  }))

const madeOf = (organization_id: string, count: number) => [{ organization_id, type: 'message.received', count }]

test('of what was never seen one goes first, then as many as make what a statement may', () => {
  const reach = createReach()
  const rows = rowsOf('org_1', 300)
  expect(reach.fitting(rows)).toHaveLength(1)
  reach.learn(rows.slice(0, 1), madeOf('org_1', 100))
  expect(reach.fitting(rows)).toHaveLength(20)
  reach.learn(rows.slice(0, 20), [])
  expect(reach.fitting(rows)).toHaveLength(256)
  reach.learn(rows.slice(0, 20), madeOf('org_1', 2_000))
  expect(reach.fitting(rows)).toHaveLength(20)
})

test('what is not known is counted as a hundred: twenty organizations go together', () => {
  const rows = Array.from({ length: 30 }, (_, n) => rowsOf(`org_${n}`, 1)).flat()
  expect(createReach().fitting(rows)).toHaveLength(20)
})

test('however many organizations are new, their events go by the hundreds once such organizations are known to make few', () => {
  const reach = createReach()
  const first = Array.from({ length: 40 }, (_, n) => rowsOf(`org_${n}`, 1)).flat()
  for (const row of first) reach.learn([row], madeOf(row.head.organization_id, 1))
  const others = Array.from({ length: 100 }, (_, n) => rowsOf(`org_1${n}0`, 4)).flat()
  const some = reach.fitting(others)
  expect(some).toEqual(others.filter(({ head }) => head.event_id === 'evt_0'))
  reach.learn(
    some,
    some.flatMap(({ head }) => madeOf(head.organization_id, 1)),
  )
  expect(reach.fitting(others.filter((row) => !some.includes(row)))).toHaveLength(256)
})

test('behind an event of which its organization has one that is new goes nothing of that organization, in its order', () => {
  const reach = createReach()
  const known = rowsOf('org_1', 2).map((row) => ({ ...row, head: { ...row.head, type: 'message.sent' } }))
  reach.learn(known, [{ organization_id: 'org_1', type: 'message.sent', count: 2 }])
  const [first, second] = rowsOf('org_1', 2) as [EventRow, EventRow]
  const [other] = rowsOf('org_2', 1) as [EventRow]
  expect(reach.fitting([first, second, ...known, other])).toEqual([first, other])
})

test('one new kind that makes much is a warning again', () => {
  const reach = createReach()
  const rows = Array.from({ length: 300 }, (_, n) => rowsOf(`org_${n}`, 1)).flat()
  for (const row of rows.slice(0, 40)) reach.learn([row], madeOf(row.head.organization_id, 1))
  reach.learn(rows.slice(40, 41), madeOf('org_40', 10_000))
  expect(reach.fitting(rows.slice(41))).toHaveLength(20)
})

test('one goes whatever it makes and weighs, the next ones within the bytes of a statement', () => {
  const reach = createReach()
  const heavy = rowsOf('org_1', 20, 900 * 1024)
  reach.learn(heavy, madeOf('org_1', 20))
  expect(reach.fitting(heavy)).toHaveLength(9)
  reach.learn(heavy.slice(0, 1), madeOf('org_1', 10_000))
  expect(reach.fitting(heavy)).toHaveLength(1)
})

test('what was more than a statement can do goes alone', () => {
  const reach = createReach()
  const rows = rowsOf('org_1', 10)
  reach.learn(rows, madeOf('org_1', 10))
  expect(reach.fitting(rows)).toHaveLength(10)
  reach.areTooMany(rows)
  expect(reach.fitting(rows)).toHaveLength(1)
  reach.learn(rows.slice(0, 1), madeOf('org_1', 1))
  expect(reach.fitting(rows)).toHaveLength(10)
})

test('those of which a statement took too long go alone from then on; what takes too long alone has failed', async () => {
  const { recordFirst } = createRecorder({ attempts: { wake() {} } as App['attempts'], payloads: createPayloads() })
  const rows = rowsOf('org_1', 256)
  await recordFirst(rows, (first) => Promise.resolve({ rows: first, made: madeOf('org_1', 1) }))
  const tooLong = Object.assign(new Error('canceling statement due to statement timeout'), { code: '57014' })
  const tried: number[] = []
  const run = (first: EventRow[]) => {
    tried.push(first.length)
    return Promise.reject(tooLong)
  }
  expect(await recordFirst(rows, run)).toEqual([])
  await expect(recordFirst(rows, run)).rejects.toBe(tooLong)
  expect(tried).toEqual([256, 1])
})
