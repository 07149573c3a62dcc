import { untilSomebodyWaits } from '@app/test/lock-waits.ts'
import { until } from '@app/test/until.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type TestMessaging, testMessaging } from '../testing/app.ts'
import { platformOf, statusPart } from '../testing/callbacks.ts'

let app: TestMessaging
let platform: ReturnType<typeof platformOf>
beforeAll(async () => {
  app = await testMessaging()
  platform = platformOf(app)
})
afterAll(() => app.close())

const settled = () => until(async () => expect(await app.sql`select 1 from callback_items`).toHaveLength(0))

const words = ['sent', 'delivered', 'read', 'played', 'failed'] as const
type Word = (typeof words)[number]

const permutations = <T>(items: readonly T[]): T[][] =>
  items.length < 2
    ? [[...items]]
    : items.flatMap((item, n) => permutations(items.toSpliced(n, 1)).map((rest) => [item, ...rest]))

/** Always the same numbers between 0 and 1, for the same seed (mulberry32). */
function seeded(seed: number) {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let n = Math.imul(state ^ (state >>> 15), 1 | state)
    n = (n + Math.imul(n ^ (n >>> 7), 61 | n)) ^ n
    return ((n ^ (n >>> 14)) >>> 0) / 2 ** 32
  }
}

const start = Math.floor(Date.now() / 1000) - 600
const partOf = (upstreamId: string, word: Word) =>
  statusPart(upstreamId, word, {
    timestamp: String(start + words.indexOf(word)),
    ...(word === 'failed' && { errors: [{ code: 131026, title: 'Message undeliverable' }] }),
    ...(word === 'sent' && { pricing: { billable: true, pricing_model: 'PMP', category: 'utility' } }),
  })

/** Messages that the platform accepted, under the given ids. */
const accepted = (upstreamIds: string[]) => app.sql`
  insert into messages (organization_id, phone_number_id, id, conversation_id, contact_id, direction, type, body, parties,
    recipient, status, rank, upstream_id, request_id, created_at)
  select s.organization_id, s.phone_number_id, 'msg_' || u.id, 'cnv_1', 'ctc_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD', 'outbound', 'audio',
    '{}', '{"contact":{"id":"ctc_01JQ8Z6V0A7XJ2N5T9WQ3RBKCD"},"conversation":{"id":"cnv_1"}}', '+15550123456', 'sent', 3,
    u.id, '', now()
  from senders s cross join unnest(${upstreamIds}::text[]) as u(id)
`

test('every order of all statuses, with duplicates, in one callback or in many, ends the same and tells each once', async () => {
  const random = seeded(20_261_120)
  const orders = permutations(words).map((order, n) => ({ upstreamId: `wamid.P${n}`, order }))
  await accepted(orders.map(({ upstreamId }) => upstreamId))
  // One callback holds one status of every message, or two, or the same as the one before.
  for (let step = 0; step < words.length; step++) {
    const statuses = orders.flatMap(({ upstreamId, order }) => {
      const word = order[step] ?? 'sent'
      const again = order[Math.floor(random() * (step + 1))] ?? word
      return [word, ...(random() < 0.5 ? [again] : [])].map((each) => partOf(upstreamId, each))
    })
    await platform.messages({ statuses })
    if (random() < 0.5) await platform.messages({ statuses: statuses.toReversed() })
  }
  await settled()
  const states = await app.sql`
    select distinct status, rank, told, error, played_at from messages where upstream_id like 'wamid.P%'
  `
  expect(states).toEqual([
    {
      status: 'failed',
      rank: 6,
      told: 31,
      error: {
        code: 'recipient_unreachable',
        message: 'Message undeliverable',
        provider_code: 131026,
        failed_at: new Date((start + words.indexOf('failed')) * 1000).toISOString(),
        by: 'callback',
      },
      playedAt: new Date((start + words.indexOf('played')) * 1000),
    },
  ])
  const told = (await app.events()).map(({ id }) => id)
  expect(new Set(told).size).toBe(told.length)
  expect(told).toHaveLength(orders.length * words.length)
})

test('what another instance is just applying to the same message is waited for, and nothing of it is lost', async () => {
  await accepted(['wamid.RACE'])
  await app.sql.begin(async (tx) => {
    await tx`update messages set status = 'delivered', rank = 4, told = 2 where upstream_id = 'wamid.RACE'`
    await platform.messages({ statuses: [partOf('wamid.RACE', 'sent')] })
    await untilSomebodyWaits(app.sql)
  })
  await settled()
  const rows = await app.sql`select status, rank, told from messages where upstream_id = 'wamid.RACE'`
  expect(rows).toEqual([{ status: 'delivered', rank: 4, told: 3 }])
})

test('lanes whose sends wait no longer are taken in one order, as by whoever accepts sends for them', async () => {
  const { sql } = app
  const ids = Array.from({ length: 8 }, (_, n) => `_01JQ8Z6V0A7XJ2N5T9WQ3RBKC${n}`)
  const lanes = ids.map((id) => `cnv${id}`)
  await sql`
    insert into messages (organization_id, phone_number_id, id, conversation_id, contact_id, direction, type, body, parties,
      recipient, status, rank, request_id, created_at)
    select s.organization_id, s.phone_number_id, 'msg' || u.id, 'cnv' || u.id, 'ctc' || u.id, 'outbound', 'text', '{}',
      json_build_object('contact', json_build_object('id', 'ctc' || u.id, 'phone_number', null, 'name', null),
        'conversation', json_build_object('id', 'cnv' || u.id, 'status', 'open', 'assigned_to', null)),
      '+15550123456', 'queued', 0, '', now()
    from senders s cross join unnest(${ids}::text[]) as u(id)
  `
  await sql`
    insert into sends (organization_id, phone_number_id, message_id, lane, attempts, parked_until, expires_at)
    select organization_id, phone_number_id, id, conversation_id, 1, now() + interval '1 hour', now() + interval '1 day'
    from messages where conversation_id = any(${lanes})
  `
  // They lie in another order than that of their ids.
  await sql`
    insert into send_lanes (id, grp, due_at)
    select l, ${app.number.phoneNumberId}, now() + interval '1 hour' from unnest(${lanes}::text[]) l order by l desc
  `
  await sql.begin(async (tx) => {
    await tx`select from send_lanes where id = ${lanes[0] ?? ''} for update`
    const statuses = ids.map((id) => statusPart(`wamid.${id}`, 'sent', { biz_opaque_callback_data: `msg${id}` }))
    await platform.messages({ statuses })
    await untilSomebodyWaits(sql)
    const free = await sql`select id from send_lanes where id = any(${lanes}) for update skip locked`
    expect(free).toHaveLength(7)
  })
  await until(async () => expect(await sql`select from sends where lane = any(${lanes})`).toHaveLength(0))
})

test('what stands in a status is passed on as it came', async () => {
  await accepted(['wamid.PASS'])
  const status = {
    ...partOf('wamid.PASS', 'failed'),
    status: 'delivered',
    errors: undefined,
    conversation: { id: 'abc', expiration_timestamp: '1750086400', origin: { type: 'utility' } },
    pricing: { billable: false, pricing_model: 'PMP', type: 'free_customer_service', category: 'service' },
    recipient_user_id: 'US.1',
    biz_opaque_callback_data: 'msg_wamid.PASS',
  }
  await platform.messages({ contacts: [{ wa_id: '15550123456', profile: { name: 'Ana' } }], statuses: [status] })
  await settled()
  const { biz_opaque_callback_data: _ours, errors: _none, ...passed } = status
  const event = (await app.events()).find(({ id }) => id === 'wamid.PASS:delivered')
  expect(event?.payload).toMatchObject({
    entry: [
      {
        changes: [
          {
            field: 'messages',
            value: {
              messaging_product: 'chat',
              contacts: [{ chat_id: '15550123456', profile: { name: 'Ana' } }],
              statuses: [passed],
            },
          },
        ],
      },
    ],
  })
  expect(JSON.stringify(event?.payload)).not.toContain('biz_opaque')
})

test('a status moves nothing of another organization, whichever of its ids it names', async () => {
  const theirs = () =>
    app.sql`select id, status, rank, upstream_id from messages where organization_id = 'org_other' order by id`
  await accepted(['wamid.THEIRS', 'wamid.NAMED'])
  await app.sql`
    update messages set organization_id = 'org_other', upstream_id = nullif(upstream_id, 'wamid.NAMED')
    where upstream_id in ('wamid.THEIRS', 'wamid.NAMED')
  `
  await app.sql`
    insert into message_doubles (organization_id, upstream_id, message_id)
    values ('org_other', 'wamid.DOUBLE', 'msg_wamid.THEIRS')
  `
  const before = await theirs()
  expect(before).toHaveLength(2)
  await platform.messages({
    statuses: [
      statusPart('wamid.THEIRS', 'read'),
      statusPart('wamid.DOUBLE', 'read'),
      statusPart('wamid.OURS', 'read', { biz_opaque_callback_data: 'msg_wamid.NAMED' }),
    ],
  })
  // They wait for a message of their own organization.
  await until(async () => expect(await app.sql`select 1 from callback_items where attempts > 0`).toHaveLength(3))
  expect(await theirs()).toEqual(before)
  await app.sql`delete from callback_items`
})
