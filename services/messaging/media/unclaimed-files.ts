import type { Sql, TransactionSql } from '@app/shared/database/database.ts'
import { type Loop, startLoop } from '@app/shared/work/loop.ts'
import { Problem } from '@app/shared/api/problem.ts'
import { newFileKey } from '@app/shared/store/store.ts'
import type { Core } from '../app.ts'

/** Longer than any file takes from its first byte to its row. */
const unclaimedHours = 24
const sweepEveryMs = 60_000
const filesASweep = 100

/**
 * A key for a file in the making. It stands among the unclaimed ones before a byte is written, so that whatever happens
 * before a row names the file, it will be deleted.
 */
export async function reserveFile(sql: Sql): Promise<string> {
  const fileKey = newFileKey()
  await sql`
    insert into unclaimed_files (file_key, due_at) values (${fileKey}, now() + ${unclaimedHours} * interval '1 hour')
  `
  return fileKey
}

/** From the commit on the file belongs to the row of media that is written in the same transaction. */
export async function claimFile(tx: TransactionSql, fileKey: string): Promise<void> {
  const { count } = await tx`delete from unclaimed_files where file_key = ${fileKey} and due_at > now()`
  if (count === 0) throw new Problem('service_unavailable', { cause: new Error(`${fileKey} is not to be claimed`) })
}

/** Gives files up in the transaction that deletes their rows; the sweep deletes them after the commit. */
export async function giveUpFiles(tx: TransactionSql, fileKeys: string[]): Promise<void> {
  if (fileKeys.length === 0) return
  await tx`
    insert into unclaimed_files (file_key, due_at) select key, now() from unnest(${fileKeys}::text[]) key order by key
    on conflict (file_key) do update set due_at = excluded.due_at
  `
}

/** Deletes a file of which nothing came. What fails here is left to the sweep. */
export async function discardFile({ sql, media, log }: Pick<Core, 'sql' | 'media' | 'log'>, fileKey: string) {
  try {
    await media.store.delete(fileKey)
    await sql`delete from unclaimed_files where file_key = ${fileKey}`
  } catch (err) {
    log.warn({ err, fileKey }, 'a file cannot be deleted now: the sweep deletes it later')
  }
}

/** Deletes files whose time is over, for as long as it takes the store to do so. */
export const startFileSweep = (core: Pick<Core, 'sql' | 'media' | 'log'>): Loop => {
  const loop = startLoop(core.log, 'unclaimed files', () => sweep(core))
  loop.wake()
  return loop
}

async function sweep({ sql, media, log }: Pick<Core, 'sql' | 'media' | 'log'>): Promise<number> {
  const due = await sql<{ fileKey: string }[]>`
    select file_key from unclaimed_files f
    where due_at <= now() and not exists (select from media where file_key = f.file_key)
    order by due_at limit ${filesASweep}
  `
  const deleted: string[] = []
  const postponed: string[] = []
  for (const { fileKey } of due) {
    await media.store.delete(fileKey).then(
      () => deleted.push(fileKey),
      (err: unknown) => {
        log.warn({ err, fileKey }, 'a file cannot be deleted yet')
        postponed.push(fileKey)
      },
    )
  }
  if (deleted.length > 0) await sql`delete from unclaimed_files where file_key = any(${deleted}::text[])`
  if (postponed.length > 0) {
    await sql`
      update unclaimed_files set due_at = now() + interval '5 minutes' where file_key = any(${postponed}::text[])
    `
  }
  return due.length === filesASweep ? 0 : sweepEveryMs
}
