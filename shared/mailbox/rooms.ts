/** Items in work that a tenant may have for each slot that is free. */
const perFreeSlot = 4

/**
 * How many more items a tenant with `held` items in work may take. One tenant alone gets four fifths of the slots, five get 19 % each:
 * however much they have to do, and however long it takes, there is room at once for the next tenant that comes.
 */
export function roomFor(free: number, held: number): number {
  const most = perFreeSlot * free
  return held < most ? Math.max(1, Math.floor((most - held) / (1 + perFreeSlot))) : 0
}

/** The `n`th of `count` parts of a room, as equal as may be. */
export const partOf = (room: number, n: number, count: number): number => Math.floor((room + n) / count)
