import { write, writeSync } from 'node:fs'

/** Lines leave together: as soon as there are so many characters, and after a second at the latest. */
const togetherChars = 4_096
const latestMs = 1_000
/** What leaves at once; a process that ends just then does not know how much of it was taken. */
const pieceChars = 16_384
/** After a failure. */
const againMs = 100
/** A reader is not waited for longer when the process ends. */
const stalledMs = 1_000

export interface LogLines {
  write: (line: string) => void
  /** Calls back when everything is written, or cannot be in a second. */
  flush: (done?: () => void) => void
  /** Writes what waits, in the last moment of the process, unless that would wait for somebody. */
  end: () => void
}

interface Options {
  /** So much waits while nothing can be written, some bytes each; what comes then is lost. */
  mostChars?: number
  /** The line that tells how many were lost, as soon as there is room again. */
  tellLost: (count: number) => string
}

/**
 * Lines of a log on their way to a file, or to a pipe. A disk that is full, and a reader that has stopped or gone, cost lines and nothing else.
 * pino's own destination ends the process for the first, or rather hangs in its last flush, and keeps lines without end for the
 * second (sonic-boom 4.2).
 */
export function openLogLines(fd: number, options: Options): LogLines {
  const queue = createQueue(options)
  let writingSince: number | undefined
  let timer: NodeJS.Timeout | undefined

  function writeSome() {
    clearTimeout(timer)
    timer = undefined
    writingSince = performance.now()
    write(fd, queue.front(), (err, written) => {
      writingSince = undefined
      if (err) return writeAfter(againMs)
      queue.take(written)
      if (queue.isDue()) writeSome()
      else if (!queue.isEmpty()) writeAfter(latestMs)
    })
  }

  function writeAfter(ms: number) {
    timer ??= setTimeout(writeSome, ms).unref()
  }

  return {
    write(line) {
      if (!queue.add(line) || writingSince !== undefined) return
      // After a failure its time is waited for.
      if (queue.isDue() && !queue.isBegun()) writeSome()
      else writeAfter(latestMs)
    },
    flush(done = () => {}) {
      const startedAt = performance.now()
      const look = () => {
        if (queue.isEmpty() || performance.now() - startedAt > stalledMs) return done()
        if (writingSince === undefined && !queue.isBegun()) writeSome()
        setTimeout(look, 5)
      }
      look()
    },
    end() {
      if (writingSince !== undefined) {
        if (performance.now() - writingSince > stalledMs) return
        // That much is on its way.
        queue.take(Infinity)
      }
      writeAll(fd, queue)
    },
  }
}

/** Waits for a reader, which may be a moment behind, and for nothing else. */
function writeAll(fd: number, queue: Queue) {
  const startedAt = performance.now()
  while (!queue.isEmpty()) {
    try {
      queue.take(writeSync(fd, queue.front()))
    } catch (err) {
      const isFull = err instanceof Error && 'code' in err && err.code === 'EAGAIN'
      if (!isFull || performance.now() - startedAt > stalledMs) return
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10)
    }
  }
}

type Queue = ReturnType<typeof createQueue>

/** What waits: bytes that are being written, and lines behind them. */
function createQueue({ mostChars = 16 * 1024 * 1024, tellLost }: Options) {
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
