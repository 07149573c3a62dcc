import type { Answer, Caller, Rpc, WholeAnswer } from '../api/contract.ts'
import { isLockTimeout, type Sql, type TransactionSql } from '../database/database.ts'
import { envelopeOf } from '../api/envelope.ts'
import type { KeyRing } from '../service/environment.ts'
import { Problem } from '../api/problem.ts'
import type { Relay } from '../events/relay.ts'
import { seal, unseal } from '../secrets/seal.ts'
import type { SealedColumn } from '../secrets/sealed-columns.ts'

/** What `once` needs of a service. */
export interface Once {
  sql: Sql
  relay: Relay
  sealKeys: KeyRing
}

interface Options {
  /** The success status, when it is not the contract's own; asked after the effect. */
  status?: () => number
  /** Whether the answer holds a one-time secret, so that it is stored sealed. */
  secret?: boolean
}

/** A stored answer; `status` 0 while its operation runs. */
interface StoredAnswer {
  fingerprint: string
  status: number
  answer: Uint8Array
  sealed: boolean
  /** The try that runs under the key is over without an answer (once-inline.ts). */
  lapsed: boolean | null
}

/**
 * Runs the effect in a transaction, once per idempotency key: the key's row, the effect and the answer are one commit, so
 * a crash leaves all or nothing. The same request again is answered with the first one's bytes; another one is refused.
 * A request that fails leaves no trace of its key.
 */
export async function once<C extends Rpc>(
  { sql, relay, sealKeys }: Once,
  contract: C,
  caller: Caller,
  effect: (tx: TransactionSql) => Promise<Answer<C>>,
  { status = () => contract.http?.status ?? 200, secret = false }: Options = {},
): Promise<WholeAnswer> {
  const { organizationId, idempotency } = caller
  const result = await sql.begin(async (tx) => {
    if (idempotency && !(await takeKey(tx, organizationId, idempotency))) return null
    const body = envelopeOf(contract, (await effect(tx)) as object, caller.requestId)
    if (idempotency) {
      const { key } = idempotency
      const stored = secret ? Buffer.from(seal(sealKeys, body.toString(), bindingOf(organizationId, key))) : body
      await tx`
        update idempotency.keys set status = ${status()}, answer = ${stored}, sealed = ${secret}
        where organization_id = ${organizationId} and key = ${key}
      `
    }
    return { whole: true, status: status(), body, replayed: false } as const
  })
  if (result) {
    relay.wake()
    return result
  }
  const replay = await storedAnswer(sql, sealKeys, caller)
  // The row that stood in the way is gone again: its transaction was rolled back, so this request may run.
  return replay ?? once({ sql, relay, sealKeys }, contract, caller, effect, { status, secret })
}

/** Inserts the key, or takes an expired one over; false when the key is taken. */
async function takeKey(tx: TransactionSql, organizationId: string, { key, fingerprint }: Key) {
  const rows = await tx`
    insert into idempotency.keys as k (organization_id, key, fingerprint, status, answer)
    values (${organizationId}, ${key}, ${fingerprint}, 0, '')
    on conflict (organization_id, key) do update
      set fingerprint = excluded.fingerprint, created_at = now()
      where k.created_at < now() - interval '24 hours'
    returning key
  `.catch(refuseRunning)
  return rows.length === 1
}

/** For the statement that takes a key: whoever waits too long for another one's transaction learns that it runs. */
export function refuseRunning(err: unknown): never {
  throw isLockTimeout(err) ? new Problem('idempotency_in_progress', { cause: err }) : err
}

type Key = NonNullable<Caller['idempotency']>

const bindingOf = (organizationId: string, key: string) => `idempotency:${organizationId}:${key}`

/** The answers that hold a secret, of all services that share the database. Whoever gives such answers looks after them: it may have one of its own. */
export const sealedAnswers: SealedColumn = {
  table: 'idempotency.keys',
  rowKey: ['organization_id', 'key'],
  text: "encode(answer, 'escape')",
  where: 'sealed',
  set: "answer = convert_to(mine.after, 'UTF8')",
  boundBy: ['organization_id', 'key'],
  boundTo: ([organizationId = '', key = '']) => bindingOf(organizationId, key),
}

/** The answer that is stored for the caller's key: null when there is none, or when the request may be tried again; thrown when the key belongs to another request or is running. */
export async function storedAnswer(sql: Sql, sealKeys: KeyRing, caller: Caller): Promise<WholeAnswer | null> {
  const { organizationId, idempotency } = caller
  if (!idempotency) return null
  const [row] = await sql<StoredAnswer[]>`
    select fingerprint, status, answer, sealed, held_until <= now() as lapsed from idempotency.keys
    where organization_id = ${organizationId} and key = ${idempotency.key}
      and created_at >= now() - interval '24 hours'
  `
  if (!row) return null
  if (row.fingerprint !== idempotency.fingerprint) throw new Problem('idempotency_key_reuse')
  if (row.status === 0 && row.lapsed) return null
  if (row.status === 0) throw new Problem('idempotency_in_progress')
  const body = openAnswer(sealKeys, row, { organizationId, key: idempotency.key })
  return { whole: true, status: row.status, body, replayed: true }
}

/** An answer as it was given. */
export function openAnswer(
  sealKeys: KeyRing,
  { answer, sealed }: Pick<StoredAnswer, 'answer' | 'sealed'>,
  { organizationId, key }: { organizationId: string; key: string },
): Uint8Array {
  if (!sealed) return answer
  return Buffer.from(unseal(sealKeys, Buffer.from(answer).toString(), bindingOf(organizationId, key)))
}

/**
 * Deletes keys past their 24 hours, 5,000 at a time; answers how many. One that is locked is just being taken over, and passed
 * by: it is young as soon as that commits, and who waited for it could hold what that one needs next. The age is looked at again
 * where they are deleted: for one that was just taken over, Postgres does not ask anew what they were chosen by.
 */
export async function sweepKeys(sql: Sql): Promise<number> {
  const { count } = await sql`
    with over as materialized (
      select organization_id, key from idempotency.keys where created_at < now() - interval '24 hours'
      limit 5000 for update skip locked
    )
    delete from idempotency.keys k using over
    where k.organization_id = over.organization_id and k.key = over.key and k.created_at < now() - interval '24 hours'
  `
  return count
}
