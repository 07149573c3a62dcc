import { z } from 'zod'
import type { Handler } from '../api/contract.ts'
import { notFound } from '../api/problem.ts'
import { type explainIdempotencyKeyOf, type Moment, momentAt, standing } from '../contracts/explain.ts'
import type { Sql } from '../database/database.ts'
import type { KeyRing } from '../service/environment.ts'
import { openAnswer } from './idempotency.ts'

/** Of the answer itself no more is shown than what it is of: it may hold texts, and a secret that is shown once. */
const Answered = z.object({
  request_id: z.string().nullish(),
  data: z.object({ id: z.string().nullish(), object: z.string().nullish() }).nullish().catch(null),
})

/** Those of a service that seals no answers. */
const none: KeyRing = { current: '', byId: new Map() }

export const explainIdempotencyKey: Handler<
  { sql: Sql; sealKeys?: KeyRing },
  ReturnType<typeof explainIdempotencyKeyOf>
> = async ({ sql, sealKeys }, { body }) => {
  const { organization_id: organizationId, key } = body
  const row = await find(sql, organizationId, key)
  if (!row) throw notFound()
  const answered = row.status === 0 ? null : read(openAnswer(sealKeys ?? none, row, { organizationId, key }))
  const made = answered?.data?.id ?? null
  return {
    request_id: answered?.request_id ?? null,
    history: [
      momentAt(row.createdAt, 'the key was used', { organization_id: organizationId }),
      standingOf(row, made === null ? {} : { answered_with: made, object: answered?.data?.object }),
    ],
  }
}

const read = (answer: Uint8Array) => Answered.parse(JSON.parse(Buffer.from(answer).toString()))

interface Row {
  status: number
  answer: Uint8Array
  sealed: boolean
  createdAt: Date
  heldUntil: Date | null
  freeAt: Date
  isFree: boolean
  isHeld: boolean
}

async function find(sql: Sql, organizationId: string, key: string) {
  const [row] = await sql<Row[]>`
    select status, answer, sealed, created_at, held_until, created_at + interval '24 hours' as free_at,
      created_at < now() - interval '24 hours' as is_free, coalesce(held_until > now(), false) as is_held
    from idempotency.keys where organization_id = ${organizationId} and key = ${key}
  `
  return row
}

function standingOf({ status, heldUntil, freeAt, isFree, isHeld }: Row, made: object): Moment {
  const until = freeAt.toISOString()
  if (isFree) return standing(`is free again since ${until}: a request with it is a new one`, { ...made })
  if (status !== 0) {
    return standing(
      `was answered with ${status}: the same request gets that again until ${until}, another one idempotency_key_reuse`,
      { status, ...made, free_at: freeAt },
    )
  }
  const details = { held_until: heldUntil, free_at: freeAt }
  return isHeld
    ? standing(
        `its request runs: the same one gets idempotency_in_progress until that ends, or until ${heldUntil?.toISOString()}`,
        details,
      )
    : standing('its request ended without an answer: nobody knows what it did, and the same one may try again', details)
}
