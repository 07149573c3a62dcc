import { setTimeout as sleep } from 'node:timers/promises'
import postgres from 'postgres'
import { during } from './during.ts'

/** Past the proxy, and past what is broken for the others. */
async function asSuperuser(url: string, work: (sql: postgres.Sql) => Promise<unknown>) {
  const sql = postgres(url, {
    max: 1,
    connect_timeout: 2,
    connection: { default_transaction_read_only: false },
    onnotice: () => {},
  })
  try {
    await work(sql)
  } finally {
    await sql.end({ timeout: 1 })
  }
}

/** Of everybody else. */
export const endSessions = (url: string) =>
  asSuperuser(
    url,
    (sql) => sql`
  select pg_terminate_backend(pid) from pg_stat_activity
  where backend_type = 'client backend' and pid <> pg_backend_pid()
`,
  ).catch(() => {})

/** The log goes on in its next file: one that must be made, when none is left of those that were made before. */
export const switchLog = (url: string) => asSuperuser(url, (sql) => sql`select pg_switch_wal()`).catch(() => {})

/** As a server is that was made a standby, or whose disk is full. It may be restarted meanwhile, so both are tried again. */
export function makeReadOnly(url: string, forMs: number) {
  const set = (value: 'on' | 'off') =>
    surely(() =>
      asSuperuser(url, async (sql) => {
        await sql.unsafe(`alter system set default_transaction_read_only = ${value}`)
        await sql`select pg_reload_conf()`
      }),
    )
  return during(
    forMs,
    () => set('on'),
    () => set('off'),
  )
}

async function surely(work: () => Promise<unknown>) {
  const endsAt = performance.now() + 30_000
  for (;;) {
    try {
      return await work()
    } catch (err) {
      if (performance.now() > endsAt) throw err
      await sleep(200)
    }
  }
}
