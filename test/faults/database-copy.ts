import { execFile } from 'node:child_process'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { postgres as server } from '@app/deploy/servers/postgres.ts'
import postgres from 'postgres'

const run = promisify(execFile)

/** The program of this name that belongs to the server of the folder: one of another version may not understand it. */
const programOf = (serversFolder: string, name: string) => join(dirname(server.find(serversFolder) ?? ''), name)

/** Writes the whole database, as it was at one moment, into a file, while it is written to. */
export const dumpInto = (file: string, serversFolder: string, url: string): Promise<unknown> =>
  run(programOf(serversFolder, 'pg_dump'), ['--format=custom', `--file=${file}`, url])

/** Puts what the file holds in the database's place. Who is connected is sent away. */
export async function restoreFrom(file: string, serversFolder: string, url: string): Promise<void> {
  await makeDatabase(url)
  await run(programOf(serversFolder, 'pg_restore'), ['--exit-on-error', `--dbname=${url}`, file])
}

/** An empty database of this address; the one that was there is gone. */
export async function makeDatabase(url: string): Promise<void> {
  const name = new URL(url).pathname.slice(1)
  const place = new URL(url)
  place.pathname = '/postgres'
  const sql = postgres(place.href, { max: 1, onnotice: () => {} })
  try {
    await sql`drop database if exists ${sql(name)} with (force)`
    await sql`create database ${sql(name)}`
  } finally {
    await sql.end({ timeout: 1 })
  }
}
