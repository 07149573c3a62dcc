import postgres, { type Sql } from 'postgres'
import { z } from 'zod'
import { composePromises } from './query-promise.ts'
import { sessionSettings } from './session-settings.ts'

export type { Fragment, Sql, TransactionSql } from 'postgres'

/** Checked before it is used: what the driver throws at a wrong one shows its password. */
export const databaseUrl = z
  .string()
  .refine(
    isDatabaseUrl,
    'must look like postgres://user:password@host:5432/database; in the password, percent-encode all but letters and digits',
  )

function isDatabaseUrl(text: string) {
  try {
    postgres(text)
    return /^postgres(ql)?:\/\//.test(text)
  } catch {
    return false
  }
}

/** How long a statement waits for a lock. */
export const lockTimeoutMs = 1_000

/** A standby that was not promoted (yet) is passed over, unless the address itself says which server it wants. */
export const ofPrimary = (url: string): { target_session_attrs?: 'primary' } =>
  url.includes('target_session_attrs=') ? {} : { target_session_attrs: 'primary' }

/**
 * The service's own schema. Column names are camelCase in code; the keys inside json values stay as they are (the
 * driver's `postgres.camel` would change those too). A statement ends after 3 s, a lock wait after 1 s.
 *
 * Every statement has its index. A queue that was empty when it was vacuumed counts as empty, though, and the plan that is
 * made then, to read all of it, is kept while it fills: so a table is read whole only where nothing else will do.
 * To the planner that is endlessly dear, and what is dear a server with `jit` on compiles each time that it runs: measured,
 * 200 ms instead of a tenth of one. So `jit` is off here, no statement has processes to help it, and a page that an index leads to costs
 * little more than the next one: plans are those that the tests have seen, whatever the server is set to.
 */
export function openDatabase(
  url: string,
  schema: string,
  { max = 10, answerSeconds = 15, readOnlySeconds = 5 } = {},
): Sql {
  const sql = postgres(url, {
    ...ofPrimary(url),
    max,
    connect_timeout: 5,
    // Longer than any statement. A host that lost its power says nothing, and the kernel would ask it for 15 minutes.
    answer_timeout: answerSeconds,
    // Nor does it tell sessions that rest: Node asks ten times more, a second apart. Else each would be found lost by whoever uses it next.
    keep_alive: 3,
    // The address may lead to another server since this one was fenced: what it is asked is old, and a relay finds nothing there.
    read_only_lifetime: readOnlySeconds,
    // In seconds. The driver's own grows to 20 s: measured after a restart of 0.7 s, an insert waited for 15 s.
    backoff: () => 0.1 + Math.random() * 0.2,
    transform: { column: { from: postgres.toCamel, to: postgres.fromCamel } },
    connection: {
      ...sessionSettings,
      application_name: schema,
      search_path: schema,
      statement_timeout: 3_000,
      lock_timeout: lockTimeoutMs,
      idle_in_transaction_session_timeout: 10_000,
      plan_cache_mode: 'auto',
      // As text, since the driver leaves out a number that is 0.
      max_parallel_workers_per_gather: '0',
      enable_seqscan: 'off',
      jit: 'off',
      random_page_cost: 1.1,
      effective_cache_size: '4GB',
    },
    onnotice: () => {},
  })
  composePromises(sql)
  return sql
}

/** Whether the server refused a statement, so that nothing of it is there. A session that was ended (57P01) may have committed before. */
export const isUndone = (err: unknown): boolean =>
  err instanceof postgres.PostgresError && /^(25|40|53|55|57014)/.test(err.code)

/** Whether the pool was closed for good: nothing is answered any more. */
export const isPoolClosed = (err: unknown): boolean =>
  err instanceof Error && 'code' in err && err.code === 'CONNECTION_ENDED'

/**
 * Whether the server let us not in: a wrong password, no such database, a right that was taken away. The statement was not begun; an operator
 * has to look at it.
 */
export const isLoginRefused = (err: unknown): boolean =>
  err instanceof Error &&
  'code' in err &&
  'severity' in err &&
  err.severity === 'FATAL' &&
  /^(28|3D|42|55)/.test(String(err.code))

/**
 * Whether the database itself failed (away, restarting, full, read-only, cancelled, closed to us), not the statement. Then nothing is held
 * against the work.
 */
export function isDatabaseAway(err: unknown): boolean {
  if (!(err instanceof Error) || !('code' in err)) return false
  const code = String(err.code)
  return (
    isLoginRefused(err) ||
    /^(08|40|53|55P03|57|58|25006)/.test(code) ||
    // What a login is told on a full disk, before there is any statement.
    (code === 'XX000' && err.message.startsWith('could not write ')) ||
    /^(CONNECTION_|CONNECT_TIMEOUT|ECONNREFUSED|ECONNRESET|ECONNABORTED|EPIPE|ETIMEDOUT|ENOENT)/.test(code) ||
    // Its name, or the way to its host, is not there while it moves from one host to another.
    /^(ENOTFOUND|EAI_AGAIN|EAI_FAIL|EHOSTUNREACH|EHOSTDOWN|ENETUNREACH|ENETDOWN)$/.test(code)
  )
}

const hasCode = (err: unknown, code: string) => err instanceof Error && 'code' in err && err.code === code

/** Whether a statement was ended, since it took longer than it may. */
export const isCancelled = (err: unknown): boolean => hasCode(err, '57014')

/** Whether a statement waited longer for a lock than it may. */
export const isLockTimeout = (err: unknown): boolean => hasCode(err, '55P03')

/** Either of the two: the database is there, and another statement may do well. */
export const tookTooLong = (err: unknown): boolean => isCancelled(err) || isLockTimeout(err)

/** Whether the database is away from every statement, and not this one too slow. */
export const isAwayFromAll = (err: unknown): boolean => isDatabaseAway(err) && !tookTooLong(err)
