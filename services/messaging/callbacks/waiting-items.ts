import type { Sql, TransactionSql } from '@app/shared/database/database.ts'
import type { Want } from '@app/shared/mailbox/mailbox.ts'
import type { ItemFloors } from './item-floors.ts'
import type { CallbackItem } from './split.ts'

/** A part of a callback in its lane, with the number's owner. */
export interface WaitingItem extends Omit<CallbackItem, 'phoneNumberId'> {
  seq: string
  attempts: number
  organizationId: string
  /** The number that it names, else one of its business account. */
  phoneNumberId: string
  accountId: string
  senderPhone: string | null
  businessAccountId: string
  /** When the callback came. */
  receivedAt: Date
}

/** The waiting items of one lane that are worked on together. */
export interface ItemBatch {
  laneId: string
  items: WaitingItem[]
}

const batchItems = 64

/**
 * What one statement reads, which has 3 s for it, and what a lane's items may come to; the first of a lane comes whatever its size. An
 * item is 0.5 KB mostly, and up to 3 MB where old messages are told.
 */
const most = { statementBytes: 4 * 1024 * 1024, laneBytes: 256 * 1024 }

/** As it is stored, which costs nothing to know; what is compressed there is so much larger, or more. */
const sizeOf = (tx: TransactionSql) =>
  tx`pg_column_size(item) * case when pg_column_compression(item) is null then 1 else 16 end`

interface Row {
  laneId: string
  seq: string
  firstSeq: string
  kind: CallbackItem['kind']
  attempts: number
  organizationId: string
  phoneNumberId: string
  accountId: string
  senderPhone: string | null
  businessAccountId: string
  receivedAt: Date
  item: Omit<CallbackItem, 'kind' | 'phoneNumberId'>
}

/** The oldest items of each lane. An item whose number is nobody's any more stays, until somebody connects it or the week is over. */
export async function takeItems(tx: TransactionSql, floors: ItemFloors, wants: Want[]): Promise<ItemBatch[]> {
  const looks = wants.map(({ lane }) => ({ laneId: lane.id, from: floors.from(lane.id) }))
  const begunAt = performance.now()
  let rows: Row[] = []
  try {
    rows = await read(tx, looks)
  } finally {
    const firsts = new Map(rows.map(({ laneId, firstSeq }) => [laneId, Number(firstSeq)]))
    floors.looked(
      looks.map((look) => ({ ...look, firstSeq: firsts.get(look.laneId) ?? null })),
      performance.now() - begunAt,
    )
  }
  const batches = new Map<string, WaitingItem[]>()
  for (const { laneId, firstSeq: _, item, ...row } of rows) {
    const batch = batches.get(laneId) ?? []
    batch.push({ ...row, ...item })
    batches.set(laneId, batch)
  }
  return [...batches].map(([laneId, items]) => ({ laneId, items }))
}

const read = (tx: TransactionSql, looks: { laneId: string; from: number }[]) => {
  const bytes = Math.min(most.laneBytes, Math.floor(most.statementBytes / looks.length))
  return tx<Row[]>`
    select i.lane as lane_id, i.seq, i.first_seq, i.kind, i.attempts, i.item, i.received_at, s.organization_id, s.phone_number_id,
      s.account_id, s.phone_number as sender_phone, s.business_account_id
    -- Of an array that is selected ten rows are expected, however many there are (each.ts).
    from unnest((select ${looks.map(({ laneId }) => laneId)}::text[]), (select ${looks.map(({ from }) => String(from))}::bigint[])) l(lane, from_seq)
    -- A range of one lane: by equality, in the order of seq, all of the queue may be read (see firstOf in sends/open-send.ts).
    cross join lateral (
      select *, min(seq) over () as first_seq, sum(${sizeOf(tx)}) over (order by seq) - ${sizeOf(tx)} as before
      from (
        select * from callback_items where (lane, seq) >= (l.lane, l.from_seq) and lane <= l.lane order by lane, seq limit ${batchItems}
      ) o
    ) i
    cross join lateral (
      select organization_id, phone_number_id, account_id, phone_number, business_account_id from senders
      where phone_number_id = i.item -> 'metadata' ->> 'phone_number_id' and attached and ${isForOwner(tx)}
      union all
      (select organization_id, phone_number_id, account_id, phone_number, business_account_id from senders
      where i.item -> 'metadata' ->> 'phone_number_id' is null and business_account_id = i.item ->> 'entryId'
        and attached and ${isForOwner(tx)}
      order by phone_number_id limit 1)
    ) s
    where i.before < ${bytes}
    order by i.seq
  `
}

/** A lane is the number's, whose owner gets nothing of what came before, or begins with the organization for which its items came. */
export const isForOwner = (sql: Sql | TransactionSql) =>
  sql`(i.lane = phone_number_id and i.received_at >= owned_since or split_part(i.lane, ':', 1) = organization_id)`
