import { measureDeliveryBacklog } from './delivery-backlog.ts'
import { measureDeliveryLists } from './delivery-lists.ts'
import type { Goal } from './goal.ts'

/** Deliveries in great number: their lists, and a backlog of them. */
export const measureDeliveries: Goal = async (bench) => {
  const lists = await measureDeliveryLists(bench)
  const backlog = await measureDeliveryBacklog(bench)
  return {
    figures: [...lists.figures, ...backlog.figures],
    notes: [...(lists.notes ?? []), ...(backlog.notes ?? [])],
    details: { lists: lists.details, backlog: backlog.details },
  }
}
