import type { Answer, Caller, Rpc, WholeAnswer } from '../api/contract.ts'
import { createInTurn } from '../bus/in-turn.ts'
import { beginSurely } from '../database/begin-surely.ts'
import { isDatabaseAway, type TransactionSql } from '../database/database.ts'
import { retryWhileAway } from '../database/retry-while-away.ts'
import { envelopeOf } from '../api/envelope.ts'
import { type Once, refuseRunning, storedAnswer } from './idempotency.ts'
import { Problem } from '../api/problem.ts'
import type { DataService } from '../service/service.ts'
import { createLines } from '../work/turns.ts'

/**
 * An operation with a call to the platform in its middle:
 *
 *   begin (transaction 1, with the key as running) ──▶ call ──▶ finish (transaction 2, with the answer)
 *                                                       ├─ refused: a Problem under 500 ──▶ giveBack, and the key is forgotten
 *                                                       └─ anything else: nobody knows ──▶ giveBack, and the key may be tried again
 *
 * A process that dies in between leaves key and row with a lease; when that has lapsed, the same request takes them over.
 */
export interface InlineSteps<Begun, Result, A> {
  /** Writes what must be known before the call. `isRetry`: an earlier try of the same key was begun, and its outcome is not known. */
  begin: (tx: TransactionSql, isRetry: boolean) => Promise<Begun>
  /** Runs outside any transaction, at most until the caller's deadline; of a retry it asks first what became of the earlier try. */
  call: (begun: Begun) => Promise<Result>
  finish: (tx: TransactionSql, begun: Begun, result: Result) => Promise<A>
  /** After a failure: deletes what `begin` wrote, or gives up its lease where what was done is not known. */
  giveBack?: (tx: TransactionSql, begun: Begun) => Promise<unknown>
  /** After a refusal: whether it was of the question what became of an earlier try, so that nobody knows that still. */
  isOpen?: (begun: Begun) => boolean
}

/** Longer than any caller waits (25 s), so that an operation that is still at it is not taken over. */
export const inlineLeaseMs = 35_000

/** What `onceInline` needs of a service. */
export type OnceInline = Once & Pick<DataService, 'log'>

/**
 * Runs the operation once per idempotency key. The same request again is answered with the first one's bytes; while it
 * runs, `idempotency_in_progress`; only what succeeded is remembered. A commit whose answer is lost is asked about until the caller's
 * deadline.
 */
export async function onceInline<C extends Rpc, Begun, Result>(
  app: OnceInline,
  contract: C,
  caller: Caller,
  steps: InlineSteps<Begun, Result, Answer<C>>,
): Promise<WholeAnswer> {
  let left: Opened<Begun> | undefined
  const opening = async (tx: TransactionSql) => {
    const held = await holdKey(tx, caller)
    left = held ? { held, begun: await steps.begin(tx, held.isRetry) } : undefined
    return left
  }
  const opened = await openInTurn(caller, () =>
    beginSurely(app.sql, opening, patienceOf(caller)).catch((err: unknown) => giveUp(app, caller, steps, left, err)),
  )
  if (!opened) {
    const replay = await storedAnswer(app.sql, app.sealKeys, caller)
    // Without one, the row that stood in the way is gone, or its lease has lapsed meanwhile.
    return replay ?? onceInline(app, contract, caller, steps)
  }
  const { held, begun } = opened
  let result: Result
  try {
    result = await steps.call(begun)
  } catch (err) {
    const isRefused = err instanceof Problem && err.status < 500 && !steps.isOpen?.(begun)
    await leave(app, caller, steps, opened, isRefused)
    throw err
  }
  const status = contract.http?.status ?? 200
  const closing = async (tx: TransactionSql) => {
    const answer = envelopeOf(contract, (await steps.finish(tx, begun, result)) as object, caller.requestId)
    await keepAnswer(tx, caller, held, status, answer)
    return answer
  }
  const body = await closeInLine(caller.organizationId, () =>
    beginSurely(app.sql, closing, patienceOf(caller)).catch((err: unknown) => giveUp(app, caller, steps, opened, err)),
  )
  app.relay.wake()
  return { whole: true, status, body, replayed: false }
}

/**
 * Transactions of an organization at a time, of either kind: between them nothing is held, so that hundreds may be under way, and all of
 * them together would take every connection, through which also others' messages come and go.
 */
const transactionsAtOnce = 2
const openInTurn = createInTurn('changes', transactionsAtOnce)
/** What was done is told, however late. */
const closeInLine = createLines(transactionsAtOnce)

/** Nobody waits longer for the answer. */
const patienceOf = ({ deadline }: Caller) => ({ patienceMs: Math.min(deadline - performance.now(), inlineLeaseMs) })

interface Opened<Begun> {
  held: Held
  begun: Begun
}

interface Held {
  /** When the key's lease ends, as Postgres writes it: whoever took it over wrote another one. Null without a key. */
  lease: string | null
  isRetry: boolean
}

/** Inserts the key as running, or takes over one that is past its 24 hours or whose try has lapsed; null when it is another's. */
async function holdKey(tx: TransactionSql, { organizationId, idempotency }: Caller): Promise<Held | null> {
  if (!idempotency) return { lease: null, isRetry: false }
  const [row] = await tx<{ lease: string; isRetry: boolean }[]>`
    insert into idempotency.keys as k (organization_id, key, fingerprint, status, answer, held_until)
    values (${organizationId}, ${idempotency.key}, ${idempotency.fingerprint}, 0, '',
      clock_timestamp() + ${inlineLeaseMs} * interval '1 ms')
    on conflict (organization_id, key) do update set
      fingerprint = excluded.fingerprint, status = 0, answer = '', sealed = false, held_until = excluded.held_until,
      created_at = case when k.created_at < now() - interval '24 hours' then now() else k.created_at end
      where k.created_at < now() - interval '24 hours'
        or k.status = 0 and k.held_until <= now() and k.fingerprint = excluded.fingerprint
    returning held_until::text as lease, created_at < now() as is_retry
  `.catch(refuseRunning)
  return row ?? null
}

async function keepAnswer(
  tx: TransactionSql,
  { organizationId, idempotency }: Caller,
  { lease }: Held,
  status: number,
  answer: Uint8Array,
) {
  if (!idempotency) return
  const { count } = await tx`
    update idempotency.keys set status = ${status}, answer = ${answer}, held_until = null
    where organization_id = ${organizationId} and key = ${idempotency.key} and status = 0
      and held_until = ${lease}::text::timestamptz
  `
  // Another one took the lapsed lease over: what it finds decides.
  if (count === 0) throw new Problem('idempotency_in_progress')
}

/** After a transaction of ours that failed, or whose end nobody knows: nobody is at it any more, and the same request may be made at once. */
async function giveUp<Begun, Result, A>(
  app: OnceInline,
  caller: Caller,
  steps: InlineSteps<Begun, Result, A>,
  opened: Opened<Begun> | undefined,
  err: unknown,
): Promise<never> {
  if (opened) await leave(app, caller, steps, opened, false)
  throw err
}

/**
 * Gives back what was begun. While the database is away, it is tried again behind the answer; what cannot be written until the lease
 * is over has lapsed by itself.
 */
async function leave<Begun, Result, A>(
  app: OnceInline,
  caller: Caller,
  steps: InlineSteps<Begun, Result, A>,
  opened: Opened<Begun>,
  isRefusal: boolean,
) {
  const give = () => app.sql.begin((tx) => giveBack(tx, caller, steps, opened, isRefusal))
  const tell = (err: unknown) =>
    app.log.warn(
      { err, organization: caller.organizationId, request: caller.requestId },
      'what a request has begun cannot be given back: it waits for the end of its lease',
    )
  await give().catch((err: unknown) => {
    if (!isDatabaseAway(err)) return tell(err)
    void retryWhileAway(give, performance.now() + inlineLeaseMs).catch(tell)
  })
}

async function giveBack<Begun, Result, A>(
  tx: TransactionSql,
  { organizationId, idempotency }: Caller,
  steps: InlineSteps<Begun, Result, A>,
  { held: { lease }, begun }: Opened<Begun>,
  isRefusal: boolean,
) {
  const key = idempotency?.key ?? ''
  const mine = tx`organization_id = ${organizationId} and key = ${key} and status = 0 and held_until = ${lease}::text::timestamptz`
  const { count } = isRefusal
    ? await tx`delete from idempotency.keys where ${mine}`
    : await tx`update idempotency.keys set held_until = now() where ${mine}`
  // Another one took the lapsed lease over: what was begun is his by now.
  if (idempotency && count === 0) return
  await steps.giveBack?.(tx, begun)
}
