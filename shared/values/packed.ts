const lengthBytes = 4

/** Several pieces of any bytes as one, each behind its length. */
export function pack(pieces: Uint8Array[]): Buffer<ArrayBuffer> {
  const packed = Buffer.allocUnsafe(pieces.reduce((sum, { length }) => sum + lengthBytes + length, 0))
  let end = 0
  for (const piece of pieces) {
    end = packed.writeUInt32BE(piece.length, end)
    packed.set(piece, end)
    end += piece.length
  }
  return packed
}

/** The pieces again, not copied. */
export function unpack({ buffer, byteOffset, byteLength }: Uint8Array): Buffer[] {
  const packed = Buffer.from(buffer, byteOffset, byteLength)
  const pieces: Buffer[] = []
  let end = 0
  while (end < packed.length) {
    const begin = end + lengthBytes
    end = begin + packed.readUInt32BE(end)
    if (end > packed.length) throw new RangeError('packed bytes end early')
    pieces.push(packed.subarray(begin, end))
  }
  return pieces
}
