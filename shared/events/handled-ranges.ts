import { z } from 'zod'
import { type Handler, rpc } from '../api/contract.ts'
import type { Sql } from '../database/database.ts'

/** One that publishes events and has consumers. */
export type EventService = 'messaging' | 'directory' | 'platform' | 'webhooks'

/** What a consumer of the service has handled of what another one has published. */
export const handledRangesOf = <S extends EventService>(service: S) =>
  rpc({
    subject: `rpc.${service}.handled-ranges` as const,
    summary: `Which events a consumer of ${service} has handled`,
    repeatable: true,
    body: z.object({
      consumer: z.string(),
      /** The service that published them. */
      source: z.string(),
      /** The ends of what is asked for, both in it: the `seq` of events in the outbox of `source`. */
      first: z.int(),
      last: z.int(),
    }),
    answer: z.object({
      /** A multirange of `seq`, as Postgres writes it. Some of the last few seconds may be missing. */
      seqs: z.string(),
      /** The newest that was handled, be it outside of what was asked for; null: none. */
      newest: z.int().nullable(),
    }),
  })

type Contract = ReturnType<typeof handledRangesOf>

export const handledRanges: Handler<{ sql: Sql }, Contract> = ({ sql }, { body }) => findHandled(sql, body)

/** Notes come late by some seconds: the newest is one before which none is missing for that. */
export async function findHandled(
  sql: Sql,
  { consumer, source, first, last }: z.output<Contract['body']>,
): Promise<z.output<Contract['answer']>> {
  const [found] = await sql<{ seqs: string | null; newest: string | null }[]>`
    select
      (
        select range_agg(r * int8range(${first}, ${last}, '[]'))::text from handled_ranges h, unnest(h.seqs) r
        where h.consumer = ${consumer} and h.source = ${source} and h.first <= ${last} and h.last >= ${first}
      ) as seqs,
      (
        select max(h.last) from handled_ranges h
        where h.consumer = ${consumer} and h.source = ${source} and h.at < now() - interval '10 s'
      ) as newest
  `
  return { seqs: found?.seqs ?? '{}', newest: found?.newest == null ? null : Number(found.newest) }
}
