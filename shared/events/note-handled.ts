import type { JsMsg } from 'nats'
import type { Sql } from '../database/database.ts'
import { type Consumer, consumers } from './provision.ts'
import type { DataService } from '../service/service.ts'
import { outboxHeader } from './stream.ts'

/** How many are kept while they cannot be noted. What is forgotten is published again, and recognized by its id. */
const mostKept = 200_000

export interface HandledNotes {
  add: (messages: JsMsg[]) => void
  /** Notes what is left. */
  stop: () => Promise<void>
}

/**
 * Notes which events were handled, for whoever published them (audit.ts). Not in the transaction that handles them, but together
 * every `noteAfterMs`: a process that dies forgets some, which come once more.
 */
export function createHandledNotes(
  { sql, log }: Pick<DataService, 'sql' | 'log'>,
  consumer: string,
  noteAfterMs = 1_000,
): HandledNotes {
  let kept = new Map<string, number[]>()
  let timer: NodeJS.Timeout | undefined

  async function note() {
    timer = undefined
    const noting = kept
    kept = new Map()
    try {
      await insert(sql, consumer, noting)
    } catch (err) {
      log.warn({ err, consumer }, 'what was handled cannot be noted yet')
      for (const [source, seqs] of noting) for (const seq of seqs) keep(source, seq)
      wake()
    }
  }
  const wake = () => void (timer ??= setTimeout(() => void note(), noteAfterMs).unref())

  function keep(source: string, seq: number) {
    const seqs = kept.get(source)
    if (!seqs) kept.set(source, [seq])
    else if (seqs.length < mostKept) seqs.push(seq)
  }

  const isAudited = Object.values<Consumer>(consumers).some(({ name, unaudited }) => name === consumer && !unaudited)
  return {
    add(messages) {
      if (!isAudited) return
      for (const message of messages) {
        const seq = Number(message.headers?.get(outboxHeader) || undefined)
        // Published by a version that did not say it.
        if (!Number.isSafeInteger(seq)) continue
        keep(message.subject.split('.')[1] ?? '', seq)
      }
      if (kept.size > 0) wake()
    },
    async stop() {
      clearTimeout(timer)
      if (kept.size > 0)
        await insert(sql, consumer, kept).catch((err: unknown) =>
          log.warn({ err, consumer }, 'what was handled cannot be noted'),
        )
    },
  }
}

async function insert(sql: Sql, consumer: string, handled: Map<string, number[]>) {
  const rows = [...handled].map(([source, seqs]) => {
    const sorted = seqs.toSorted((a, b) => a - b)
    return { consumer, source, seqs: multirangeOf(sorted), first: sorted[0] ?? 0, last: sorted.at(-1) ?? 0 }
  })
  await sql`
    insert into handled_ranges (consumer, source, seqs, first, last)
    select consumer, source, seqs::int8multirange, first, last
    from json_to_recordset(${JSON.stringify(rows)}::text::json) as r(consumer text, source text, seqs text, first bigint, last bigint)
  `
}

/** As Postgres reads it, `{[1,3],[7,7]}`, of numbers in their order. */
export function multirangeOf(sorted: number[]): string {
  const ranges: [number, number][] = []
  for (const n of sorted) {
    const current = ranges.at(-1)
    if (current && n <= current[1] + 1) current[1] = n
    else ranges.push([n, n])
  }
  return `{${ranges.map(([first, last]) => `[${first},${last}]`).join()}}`
}
