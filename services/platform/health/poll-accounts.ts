import { beginSurely } from '@app/shared/database/begin-surely.ts'
import type { Sql, TransactionSql } from '@app/shared/database/database.ts'
import { type Loop, startLoop } from '@app/shared/work/loop.ts'
import type { App } from '../app.ts'
import type { DueAccount } from './due-account.ts'
import { pollAccount } from './poll-account.ts'

/** Numbers that are asked for at a time, by one instance: one that does not answer holds a place, and no other number. */
const places = 64
const idleMs = 1_000
/** Two times what one question may take. */
const leaseMs = 60_000
/** Places that come free together are filled by one statement. */
const spacingMs = 50

/**
 * Asks the platform for the state of every attached number when it is due. What is due is claimed with a lease, so that one
 * instance asks, and another one does when that one died.
 */
export function startPolling(app: App): Loop {
  const asking = new Set<Promise<void>>()
  const stopping = new AbortController()

  async function turn() {
    const free = places - asking.size
    // Woken by the next one that ends.
    if (free === 0) return Infinity
    const due = await claim(app, free)
    for (const account of due) {
      const job = pollAccount(app, account, stopping.signal)
        .catch((err: unknown) => app.log.warn({ err, account: account.id }, 'poll'))
        .finally(() => {
          asking.delete(job)
          loop.wake()
        })
      asking.add(job)
    }
    return idleMs
  }

  const loop = startLoop(app.log, 'poll accounts', turn, { spacingMs })
  loop.wake()
  return {
    wake: loop.wake,
    async stop() {
      stopping.abort()
      await loop.stop()
      await Promise.all(asking)
    },
  }
}

const isDue = (sql: Sql | TransactionSql) =>
  sql`attached and sealed_token is not null and poll_at <= now() and poll_held_until < now()`

async function claim({ sql }: App, count: number): Promise<DueAccount[]> {
  // Mostly none is.
  const [first] = await sql`select from accounts where ${isDue(sql)} order by poll_at limit 1`
  if (!first) return []
  return beginSurely(
    sql,
    (tx) => tx<DueAccount[]>`
  with d as materialized (
    select organization_id, id from accounts where ${isDue(tx)}
    order by poll_at limit ${count} for update skip locked
  )
  -- Due again when the lease ends; sooner only if something is reported meanwhile.
  update accounts a set polled_at = now(), poll_held_until = now() + ${leaseMs} * interval '1 ms',
    poll_at = now() + ${leaseMs} * interval '1 ms'
  from d where a.organization_id = d.organization_id and a.id = d.id
  returning a.organization_id, a.id, a.phone_number_id, a.business_account_id, a.sealed_token, a.version, a.poll_failures,
    a.poll_held_until::text as held_until
`,
  )
}
