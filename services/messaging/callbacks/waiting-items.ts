import type { TransactionSql } from '@app/shared/database.ts'
import type { Want } from '@app/shared/mailbox.ts'
import type { CallbackItem } from './split.ts'

/** A part of a callback in its lane, with the number's owner. */
export interface WaitingItem extends Omit<CallbackItem, 'phoneNumberId'> {
  seq: string
  attempts: number
  organizationId: string
  phoneNumberId: string
  accountId: string
  senderPhone: string | null
  businessAccountId: string
}

/** The waiting items of one lane that are worked on together. */
export interface ItemBatch {
  laneId: string
  items: WaitingItem[]
}

const batchItems = 64

interface Row {
  laneId: string
  seq: string
  kind: 'message' | 'status'
  attempts: number
  organizationId: string
  phoneNumberId: string
  accountId: string
  senderPhone: string | null
  businessAccountId: string
  item: Omit<CallbackItem, 'kind' | 'phoneNumberId'>
}

/** The oldest items of each lane. An item whose number is nobody's any more stays, until somebody connects it or the week is over. */
export async function takeItems(tx: TransactionSql, wants: Want[]): Promise<ItemBatch[]> {
  const lanes = wants.map(({ lane }) => lane.id)
  const rows = await tx<Row[]>`
    select i.lane as lane_id, i.seq, i.kind, i.attempts, i.item, s.organization_id, s.phone_number_id, s.account_id,
      s.phone_number as sender_phone, s.business_account_id
    from unnest(${lanes}::text[]) l
    cross join lateral (select * from callback_items where lane = l order by seq limit ${batchItems}) i
    join senders s on s.phone_number_id = i.item -> 'metadata' ->> 'phone_number_id' and s.attached
    order by i.seq
  `
  const batches = new Map<string, WaitingItem[]>()
  for (const { laneId, item, ...row } of rows) {
    const batch = batches.get(laneId) ?? []
    batch.push({ ...row, ...item })
    batches.set(laneId, batch)
  }
  return [...batches].map(([laneId, items]) => ({ laneId, items }))
}
