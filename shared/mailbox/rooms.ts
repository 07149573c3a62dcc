/** So many items in work a tenant may have for each slot that is free. */
const perFreeSlot = 4

/**
 * How many more items a tenant may take that has `held` in work. Alone it gets four fifths of the slots, five get 19 % each:
 * however much they have to do, and however long each of it takes, there is room at once for one that comes.
 */
export function roomFor(free: number, held: number): number {
  const most = perFreeSlot * free
  return held < most ? Math.max(1, Math.floor((most - held) / (1 + perFreeSlot))) : 0
}

/** The `n`th of `count` parts of a room, as equal as may be. */
export const partOf = (room: number, n: number, count: number): number => Math.floor((room + n) / count)
