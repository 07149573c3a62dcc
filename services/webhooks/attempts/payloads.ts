import type { TransactionSql } from '@app/shared/database/database.ts'
import { LRUCache } from 'lru-cache'

/** What is delivered of an event; it never changes. */
export interface Payload {
  type: string
  source: string
  body: Buffer
  /** W3C trace context, of an event that is traced. */
  trace: string | null
}

/** Where an event stands in `events`. */
export interface EventKey {
  organizationId: string
  eventId: string
  eventAt: Date
}

/** Payloads that this process had a moment ago, so that a first attempt does not read back what fan-out has just written. */
export interface Payloads {
  remember: (key: Omit<EventKey, 'eventAt'>, payload: Payload) => void
  /** In the order of the keys; null where the payload is kept no more. */
  find: (tx: TransactionSql, keys: EventKey[]) => Promise<(Payload | null)[]>
}

const mostBytes = 32 * 1024 * 1024

export function createPayloads(): Payloads {
  const known = new LRUCache<string, Payload>({
    maxSize: mostBytes,
    sizeCalculation: ({ body }) => body.length + 500,
  })
  return {
    remember: (key, payload) => void known.set(nameOf(key), payload),
    async find(tx, keys) {
      const found = keys.map((key) => known.get(nameOf(key)) ?? null)
      const missing = keys.filter((_, n) => found[n] === null)
      if (missing.length === 0) return found
      const stored = await read(tx, missing)
      for (const [name, payload] of stored) known.set(name, payload)
      return keys.map((key, n) => found[n] ?? stored.get(nameOf(key)) ?? null)
    },
  }
}

const nameOf = ({ organizationId, eventId }: Omit<EventKey, 'eventAt'>) => `${organizationId} ${eventId}`

async function read(tx: TransactionSql, keys: EventKey[]): Promise<Map<string, Payload>> {
  const rows = await tx<
    { organizationId: string; eventId: string; type: string; source: string; payload: string; trace: string | null }[]
  >`
    select k."organizationId" as organization_id, k."eventId" as event_id, e.type, e.source, e.payload, e.trace
    from json_to_recordset(${JSON.stringify(keys)}::text::json)
      as k("organizationId" text, "eventId" text, "eventAt" timestamptz)
    cross join lateral (
      select type, source, payload, trace from events
      where at = k."eventAt" and organization_id = k."organizationId" and event_id = k."eventId" limit 1
    ) e
  `
  return new Map(
    rows.map(({ type, source, payload, trace, ...key }) => [
      nameOf(key),
      { type, source, body: Buffer.from(payload), trace },
    ]),
  )
}
