/** Lines leave together, as soon as there are so many characters. */
const togetherChars = 4_096
/** What leaves at once; a process that ends just then does not know how much of it was taken. */
const pieceChars = 16_384

export interface QueueOptions {
  /** So much waits while nothing can be written, some bytes each; what comes then is lost. */
  mostChars?: number
  /** The line that tells how many were lost, as soon as there is room again. */
  tellLost: (count: number) => string
}

/** What waits: bytes that are being written, and lines behind them. */
export function createQueue({ mostChars = 16 * 1024 * 1024, tellLost }: QueueOptions) {
  let bytes = Buffer.alloc(0)
  const pieces: string[] = []
  let last = ''
  /** In pieces. */
  let chars = 0
  let lost = 0

  function push(line: string) {
    last += line
    if (last.length < pieceChars) return
    pieces.push(last)
    chars += last.length
    last = ''
  }

  function tell() {
    if (lost > 0) push(tellLost(lost))
    lost = 0
  }

  function nextPiece() {
    tell()
    const piece = pieces.shift()
    if (piece !== undefined) {
      chars -= piece.length
      return piece
    }
    const few = last
    last = ''
    return few
  }

  return {
    /** Answers whether there was room. */
    add(line: string): boolean {
      if (bytes.length + chars + last.length > mostChars) {
        lost++
        return false
      }
      tell()
      push(line)
      return true
    },
    /** The bytes that come first. */
    front: (): Buffer => (bytes.length > 0 ? bytes : (bytes = Buffer.from(nextPiece()))),
    take(count: number) {
      bytes = bytes.subarray(count)
    },
    isEmpty: () => bytes.length + chars + last.length + lost === 0,
    isBegun: () => bytes.length > 0,
    isDue: () => bytes.length + chars > 0 || last.length >= togetherChars,
  }
}
