import { setTimeout as sleep } from 'node:timers/promises'
import { isDatabaseAway, isPoolClosed, isUndone, type Sql, type TransactionSql } from './database.ts'

const retryMs = 50
/** After this time without an answer the transaction counts as not committed. */
const longestMs = 30_000

interface Ways<T> {
  patienceMs?: number
  /** Whether the database holds what the result tells of. Without it no other server, and none that has crashed, is believed. */
  isThere?: (result: T) => Promise<boolean>
}

interface Ready<T> {
  id: string
  server: string
  result: T
}

/**
 * A transaction that returns its result also when the connection is lost before the commit is answered: Postgres is then asked for
 * `patienceMs` whether it was committed. Throws the lost connection's error when it was not, or when nobody knows by then. Use it where the result
 * says what was begun, so that the transaction cannot simply be repeated. Its statements are those of queues, and run by plans that are kept.
 *
 * The number alone does not tell. A server that crashes before a commit is on its disk gives the number out again, and so does a standby that
 * takes over without having heard of it: what is committed under it may be another's.
 */
export async function beginSurely<T>(
  sql: Sql,
  work: (tx: TransactionSql) => Promise<T>,
  ways: Ways<T> = {},
): Promise<T> {
  const ready: Ready<T>[] = []
  const committing = sql.begin(async (tx) => {
    // Both leave together, and the number's question goes first: behind the work its answer could be lost with that of the commit,
    // and an error of the work would become its own.
    const asked = tx<{ id: string; server: string }[]>`
      select pg_current_xact_id()::text as id, ${serverOf(tx)} as server, ${keepingPlans(tx)}
    `.execute()
    const [[transaction], result] = await Promise.all([asked, work(tx)])
    if (transaction) ready.push({ ...transaction, result })
    return { result }
  })
  const { result } = await committing.catch(async (err: unknown) => {
    const [lost] = ready
    if (lost && isDatabaseAway(err) && !isUndone(err) && (await isCommitted(sql, lost, ways))) return lost
    throw err
  })
  return result
}

/**
 * For the rest of the transaction plans are kept, whatever they are expected to cost. Left to itself, Postgres makes a plan for each call of a
 * statement whose first ones found its tables empty and that finds them full: thousands of times, and such plans take longer than
 * what they are for. So a queue that had grown would have shrunk no more.
 */
const keepingPlans = (tx: TransactionSql) => tx`set_config('plan_cache_mode', 'force_generic_plan', true)`

/** The age of its statistics: a server that has crashed begins them anew, and a standby has its own. */
const serverOf = (sql: Sql | TransactionSql) => sql`(select stats_reset::text from pg_stat_bgwriter)`

async function isCommitted<T>(sql: Sql, lost: Ready<T>, { patienceMs = longestMs, isThere }: Ways<T>) {
  const startedAt = performance.now()
  do {
    const known = await findOut(sql, lost, isThere)
    if (known !== null) return known
    await sleep(retryMs)
  } while (performance.now() - startedAt < patienceMs)
  return false
}

/** Null as long as it is in progress, or the database does not say. */
async function findOut<T>(sql: Sql, { id, server, result }: Ready<T>, isThere: Ways<T>['isThere']) {
  try {
    const [row] = await sql<{ status: string | null; isSame: boolean }[]>`
      select pg_xact_status(${id}::text::xid8) as status, ${serverOf(sql)} = ${server} as is_same
    `
    if (row?.status === 'in progress') return null
    return row?.status === 'committed' && (isThere ? await isThere(result) : row.isSame)
  } catch (err) {
    return isDatabaseAway(err) && !isPoolClosed(err) ? null : false
  }
}
