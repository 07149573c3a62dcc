import type { Lane } from '@app/shared/mailbox/lanes.ts'
import { newId } from '@app/shared/values/ids.ts'
import { untilSomebodyWaits } from '@app/test/lock-waits.ts'
import { until } from '@app/test/until.ts'
import { beforeAll, expect, test } from 'vitest'
import { organizationId, phoneNumberId, type TestMessaging } from '../testing/app.ts'
import { json } from '../testing/media-platform.ts'
import { messagingWithPictures } from '../testing/pictures.ts'
import { beginCopies } from './begin-copies.ts'
import { wakeSleepers } from './copy-media.ts'
import { type CopyOutcome, settleCopies } from './settle-copies.ts'
import { takeCopies, type WaitingCopy } from './waiting-copies.ts'

const pictures = messagingWithPictures()
const { picture, told, locationOf } = pictures
let app: TestMessaging
beforeAll(() => void ({ app } = pictures))

test('what somebody waits to be told of goes before what was imported', async () => {
  const lane = newId('org')
  const lanes = [{ lane: { id: lane } as Lane, free: 2, fresh: true, heldMs: 0 }]
  await app.sql`
    insert into media_copies (organization_id, phone_number_id, media_id, lane, upstream_media_id, due_at, event, event_due_at)
    select ${lane}, ${phoneNumberId}, 'med_' || n, ${lane}, n, now() - (10 - n) * interval '1 second',
      case when n = 5 then '{}'::jsonb end, now() + interval '1 hour' from generate_series(1, 5) n
  `
  const taken = async () =>
    (await app.sql.begin((tx) => takeCopies(tx, lanes))).map(({ mediaId }) => mediaId).toSorted()
  expect(await taken()).toEqual(['med_1', 'med_5'])
  await app.sql`delete from media_copies where lane = ${lane}`
})

test('a lane that is due already keeps its place when another copy comes', async () => {
  const lane = newId('org')
  const file = { id: '1', mime_type: 'image/jpeg', sha256: null, filename: null }
  await app.sql.begin(async (tx) => {
    await tx`insert into media_lanes (id, grp, due_at) values (${lane}, ${lane}, now() - interval '1 minute')`
    await beginCopies(tx, [{ organizationId: lane, phoneNumberId, mediaId: newId('med'), file, event: null }])
    const place = await tx`select from media_lanes where id = ${lane} and due_at < now() and arrivals = 1`
    expect(place).toHaveLength(1)
    for (const table of ['media_lanes', 'media_copies', 'media'])
      await tx`delete from ${tx(table)} where ${tx(table === 'media_lanes' ? 'id' : 'organization_id')} = ${lane}`
  })
})

test('a copy that its holder has begun is not begun again, told of or not; whoever takes the lane over begins it', async () => {
  const lane = newId('org')
  await app.sql`
    insert into media_copies (organization_id, phone_number_id, media_id, lane, upstream_media_id, begun_at, event, event_due_at)
    select ${lane}, ${phoneNumberId}, 'med_' || n, ${lane}, n, case when n <= 2 then now() end,
      case when n % 2 = 0 then '{}'::jsonb end, now() + interval '1 hour' from generate_series(1, 4) n
  `
  const taken = async (fresh: boolean) => {
    const wants = [{ lane: { id: lane } as Lane, free: 8, fresh, heldMs: 0 }]
    return (await app.sql.begin((tx) => takeCopies(tx, wants))).map(({ mediaId }) => mediaId).toSorted()
  }
  expect(await taken(false)).toEqual(['med_3', 'med_4'])
  expect(await taken(true)).toEqual(['med_1', 'med_2', 'med_3', 'med_4'])
  await app.sql`delete from media_copies where lane = ${lane}`
})

test('a copy that waits for its next try is not begun before that, told of or not, though others of its lane are due', async () => {
  const lane = newId('org')
  await app.sql`
    insert into media_copies (organization_id, phone_number_id, media_id, lane, upstream_media_id, due_at, event, event_due_at)
    select ${lane}, ${phoneNumberId}, 'med_' || n, ${lane}, n, now() + case when n <= 2 then interval '1 hour' else '0' end,
      case when n % 2 = 0 then '{}'::jsonb end, now() + interval '1 hour' from generate_series(1, 4) n
  `
  const wants = [{ lane: { id: lane } as Lane, free: 8, fresh: true, heldMs: 0 }]
  const taken = await app.sql.begin((tx) => takeCopies(tx, wants))
  expect(taken.map(({ mediaId }) => mediaId).toSorted()).toEqual(['med_3', 'med_4'])
  await app.sql`delete from media_copies where lane = ${lane}`
})

test('copies begin beside one that somebody has in hand, and do not wait for it', async () => {
  const lane = newId('org')
  const ids = [newId('med'), newId('med')]
  await app.sql`
    insert into media_copies (organization_id, phone_number_id, media_id, lane, upstream_media_id, event_due_at)
    select ${lane}, ${phoneNumberId}, id, ${lane}, '1', now() from unnest(${ids}::text[]) id
  `
  const wants = [{ lane: { id: lane } as Lane, free: 8, fresh: true, heldMs: 0 }]
  const begun = await app.sql.begin(async (tx) => {
    await tx`select from media_copies where media_id = ${ids[0] ?? ''} for update`
    return app.sql.begin((other) => takeCopies(other, wants))
  })
  expect(begun.map(({ mediaId }) => mediaId)).toEqual(ids.slice(1))
  await app.sql`delete from media_copies where lane = ${lane}`
})

test('a copy that a process died over is begun again', async () => {
  app.files.answerWith((_call, response) => json(response, { error: { code: 2 } }, 503))
  const { upstreamId } = await picture()
  await until(async () =>
    expect(await app.sql`select seq from media_copies where attempts > 0 and begun_at is null`).toHaveLength(1),
  )
  app.files.answerWith(null)
  // As a kill -9 leaves it: begun, and its lane held by nobody any more.
  await app.sql`update media_copies set begun_at = now() - interval '1 minute', due_at = now() - interval '1 minute'`
  await app.sql`update media_lanes set due_at = now(), held_until = now() - interval '1 second'`
  await until(async () => expect(await told(upstreamId)).toMatchObject([{ media_status: 'ready' }]))
})

test('copies that a process died over are begun again though newer ones go first', async () => {
  const ready = (pictures: { upstreamId: string }[]) =>
    until(async () => {
      for (const { upstreamId } of pictures)
        expect((await told(upstreamId)).at(-1)).toMatchObject({ media_status: 'ready' })
    })
  // Its lane is held by a process that is gone, which has begun eight of them and told of them without their files.
  await app.sql`
    insert into media_lanes (id, grp, held_until) values (${organizationId}, ${organizationId}, now() + interval '1 hour')
    on conflict (id) do update set held_until = excluded.held_until
  `
  const left = await Promise.all(Array.from({ length: 8 }, () => picture()))
  await app.sql`update media_copies set begun_at = now(), attempts = 1, event = null`
  const newer = await Promise.all(Array.from({ length: 8 }, () => picture()))
  await app.sql`update media_lanes set held_until = now() - interval '1 second'`
  await ready(newer)
  await until(async () => {
    for (const { id } of left) expect(await locationOf(id)).toMatch(/^https:/)
  })
})

test('what came of a copy that another process has begun again since changes nothing of it', async () => {
  const lane: Lane = {
    id: organizationId,
    group: organizationId,
    arrivals: '0',
    heldUntil: '',
    failures: 0,
    pacedMs: 0,
  }
  await app.sql`
    insert into media_lanes (id, grp, held_until) values (${organizationId}, ${organizationId}, now() + interval '1 hour')
    on conflict (id) do update set held_until = excluded.held_until
  `
  const { upstreamId, id } = await picture()
  const rows = await app.sql<WaitingCopy[]>`
    update media_copies set begun_at = now(), attempts = 2 returning lane as lane_id, seq, organization_id, media_id, 1 as attempts
  `
  const [item] = rows
  if (!item) throw new Error('there is no copy')
  const read = async () => [...(await app.sql`select attempts, begun_at, due_at from media_copies`)]
  const before = await read()
  const file = { size: 1, sha256: 'x', mimeType: null }
  const outcomes: (CopyOutcome | null)[] = [
    { kind: 'copied', fileKey: 'other', file },
    { kind: 'failed' },
    { kind: 'again', waitMs: 0 },
    null,
  ]
  for (const outcome of outcomes) {
    await app.sql.begin((tx) => settleCopies(tx, app.media, [{ item, lane, outcome }]))
    expect([await read(), await told(upstreamId)]).toEqual([before, []])
  }
  // Whoever has it now stops before it has begun: that was no try.
  await app.sql.begin((tx) => settleCopies(tx, app.media, [{ item: { ...item, attempts: 2 }, lane, outcome: null }]))
  expect(await read()).toMatchObject([{ attempts: 1, begunAt: null }])
  await app.sql`update media_lanes set held_until = now() - interval '1 second', due_at = now()`
  await until(async () => expect(await told(upstreamId)).toMatchObject([{ media_status: 'ready' }]))
  expect(await locationOf(id)).toMatch(/^https:/)
})

test('copies that end together are locked in one order, as by who deletes their messages: neither waits for the other', async () => {
  const lane: Lane = { id: newId('org'), group: '', arrivals: '0', heldUntil: '', failures: 0, pacedMs: 0 }
  const ids = [newId('med'), newId('med'), newId('med')]
  await app.sql`
    insert into media_copies (organization_id, phone_number_id, media_id, lane, upstream_media_id, event_due_at, begun_at, attempts)
    select ${lane.id}, ${phoneNumberId}, id, ${lane.id}, '1', now(), now(), 1 from unnest(${ids}::text[]) id
  `
  const items = await app.sql<WaitingCopy[]>`
    select lane as lane_id, seq, organization_id, media_id, attempts from media_copies where lane = ${lane.id} order by seq desc
  `
  const file = { size: 1, sha256: 'x', mimeType: null }
  const outcomes: CopyOutcome[] = [
    { kind: 'copied', fileKey: 'k', file },
    { kind: 'failed' },
    { kind: 'again', waitMs: 0 },
  ]
  const done = items.map((item, n) => ({ item, lane, outcome: outcomes[n] ?? null }))
  const { settling, free } = await app.sql.begin(async (tx) => {
    await tx`select from media_copies where organization_id = ${lane.id} and media_id = ${ids[0] ?? ''} for update`
    const settled = app.sql.begin((other) => settleCopies(other, app.media, done))
    await untilSomebodyWaits(app.sql)
    const others = await app.sql`select media_id from media_copies where lane = ${lane.id} for update skip locked`
    return { settling: settled, free: others }
  })
  await settling
  expect(free).toHaveLength(2)
  await app.sql`delete from media_copies where lane = ${lane.id}`
})

test('a lane that sleeps beside a copy is found and woken, and no other lane is waited for', async () => {
  const [asleep, gone, waiting] = [newId('org'), newId('org'), newId('org')]
  await app.sql`
    insert into media_copies (organization_id, phone_number_id, media_id, lane, upstream_media_id, event_due_at, due_at)
    select id, ${phoneNumberId}, 'med', id, '1', now(), now() + interval '1 hour'
    from unnest(${[asleep, gone, waiting]}::text[]) id
  `
  await app.sql`
    insert into media_lanes (id, grp, due_at)
    values (${asleep}, ${asleep}, null), (${waiting}, ${waiting}, now() + interval '2 hours')
  `
  await app.sql.begin(async (tx) => {
    await tx`select from media_lanes where id = ${waiting} for update`
    expect(await wakeSleepers(app.sql)).toBe(2)
  })
  const woken = await app.sql<{ id: string }[]>`
    select id from media_lanes where id = any(${[asleep, gone, waiting]}) and due_at < now() + interval '1 hour 1 minute'
  `
  expect(woken.map(({ id }) => id).toSorted()).toEqual([asleep, gone].toSorted())
})
