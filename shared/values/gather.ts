/** Bytes that come in pieces. */
export interface Gathered {
  length: number
  add: (piece: Buffer) => void
  /** All of them, once no more come. */
  bytes: () => Buffer
}

/**
 * Keeps pieces in one buffer that is at most twice as long. Kept apart, pieces of one byte take 400 times that, and hold on to the
 * buffer that they came in: whoever sends them would decide how much lies here. One that comes alone is not copied.
 */
export function gather(): Gathered {
  let room: Buffer = Buffer.alloc(0)
  const gathered: Gathered = {
    length: 0,
    add(piece) {
      const length = gathered.length + piece.length
      if (gathered.length === 0) room = piece
      else {
        if (length > room.length) room = grown(room, length)
        piece.copy(room, gathered.length)
      }
      gathered.length = length
    },
    bytes: () => room.subarray(0, gathered.length),
  }
  return gathered
}

function grown(room: Buffer, neededBytes: number) {
  const larger = Buffer.allocUnsafe(Math.max(neededBytes, 2 * room.length))
  room.copy(larger)
  return larger
}
