import { setTimeout as sleep } from 'node:timers/promises'
import { isDatabaseAway, isPoolClosed, isUndone, type Sql, type TransactionSql } from './database.ts'

const retryMs = 50
/** After this time without an answer the transaction counts as not committed. */
const longestMs = 30_000

/**
 * A transaction that returns its result also when the connection is lost before the commit is answered: Postgres is then asked for
 * `patienceMs` whether it was committed. Throws the lost connection's error when it was not, or when nobody knows by then. Use it where the result
 * says what was begun, so that the transaction cannot simply be repeated.
 */
export async function beginSurely<T>(
  sql: Sql,
  work: (tx: TransactionSql) => Promise<T>,
  patienceMs = longestMs,
): Promise<T> {
  const ready: { id: string; result: T }[] = []
  const committing = sql.begin(async (tx) => {
    // Both leave together, and the number's question goes first: behind the work its answer could be lost with that of the commit,
    // and an error of the work would become its own.
    const asked = tx<{ id: string }[]>`select pg_current_xact_id()::text as id`.execute()
    const [[transaction], result] = await Promise.all([asked, work(tx)])
    if (transaction) ready.push({ id: transaction.id, result })
    return { result }
  })
  const { result } = await committing.catch(async (err: unknown) => {
    const [lost] = ready
    if (lost && isDatabaseAway(err) && !isUndone(err) && (await isCommitted(sql, lost.id, patienceMs))) return lost
    throw err
  })
  return result
}

async function isCommitted(sql: Sql, id: string, patienceMs: number) {
  const startedAt = performance.now()
  do {
    const status = await statusOf(sql, id)
    if (status !== 'in progress') return status === 'committed'
    await sleep(retryMs)
  } while (performance.now() - startedAt < patienceMs)
  return false
}

/** In progress, too, as long as the database does not say. */
async function statusOf(sql: Sql, id: string): Promise<string | null> {
  try {
    const [row] = await sql<{ status: string | null }[]>`select pg_xact_status(${id}::text::xid8) as status`
    return row?.status ?? null
  } catch (err) {
    return isDatabaseAway(err) && !isPoolClosed(err) ? 'in progress' : null
  }
}
