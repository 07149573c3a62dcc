import type { Sql } from '@app/shared/database/database.ts'
import type { Lane } from '@app/shared/mailbox/lanes.ts'
import { newId } from '@app/shared/values/ids.ts'
import { createTestDatabase, type TestDatabase } from '@app/test/database.ts'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { beginCopies } from './begin-copies.ts'
import { settleCopies } from './settle-copies.ts'
import { reserveFile } from './unclaimed-files.ts'
import { takeCopies } from './waiting-copies.ts'

let database: TestDatabase
let sql: Sql
const number = '106540352242922'
const lane: Lane = { id: newId('org'), group: '', arrivals: '0', heldUntil: '', failures: 0, pacedMs: 0 }

beforeAll(async () => {
  database = await createTestDatabase('messaging')
  sql = database.sql
})
afterAll(() => database.drop())
beforeEach(async () => {
  await sql`truncate senders, media_copies`
  await sql`
    insert into media_copies (organization_id, phone_number_id, media_id, lane, upstream_media_id, event_due_at)
    values (${lane.id}, ${number}, ${newId('med')}, ${lane.id}, '1', now())
  `
})

/** Its lane has been taken over. */
const take = () => sql.begin((tx) => takeCopies(tx, [{ lane, free: 1, fresh: true, heldMs: 0 }]))

test('a copy for a number that is another organization’s by now gets no token of that one', async () => {
  for (const [organization, isAttached] of [
    [lane.id, false],
    [newId('org'), true],
  ] as const)
    await sql`
      insert into senders (organization_id, phone_number_id, account_id, business_account_id, version, team_id, sealed_token, settings, attached)
      values (${organization}, ${number}, 'acc_1', '1', 1, '', 'sealed', '{}', ${isAttached})
    `
  expect(await take()).toMatchObject([{ accountId: null, sealedToken: null }])
})

test('the file of a copy that was begun again meanwhile, and that nobody needs, is still to be deleted', async () => {
  const [item] = await take()
  if (!item) throw new Error('there is no copy')
  await take()
  const fileKey = await reserveFile(sql)
  const file = { size: 1, sha256: 'x', mimeType: null }
  const done = [{ item, lane, outcome: { kind: 'copied', fileKey, file } as const }]
  await sql.begin((tx) => settleCopies(tx, { publicUrl: 'https://chat.example.com' }, done))
  expect(await sql`select file_key from unclaimed_files`).toEqual([{ fileKey }])
})

test('a file is that of its own copy, and all others that nobody needs are still to be deleted', async () => {
  await sql`truncate media_copies`
  const file = { id: '1', mime_type: 'image/jpeg', sha256: null, filename: null }
  const copies = [newId('med'), newId('med')].map((mediaId) => ({
    organizationId: lane.id,
    phoneNumberId: number,
    mediaId,
    file,
    event: null,
  }))
  await sql.begin((tx) => beginCopies(tx, copies))
  const [item] = await take()
  if (!item) throw new Error('there is no copy')
  const [fileKey, other] = [await reserveFile(sql), await reserveFile(sql)]
  const outcome = { kind: 'copied' as const, fileKey, file: { size: 1, sha256: 'x', mimeType: null } }
  await sql.begin((tx) => settleCopies(tx, { publicUrl: 'https://chat.example.com' }, [{ item, lane, outcome }]))
  const kept = await sql`select id, file_key from media where organization_id = ${lane.id} and file_key is not null`
  expect(kept).toEqual([{ id: item.mediaId, fileKey }])
  expect(await sql`select file_key from unclaimed_files where file_key in (${fileKey}, ${other})`).toEqual([
    { fileKey: other },
  ])
})
