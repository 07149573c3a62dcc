import { write, writeSync } from 'node:fs'
import { createQueue, type QueueOptions } from './log-queue.ts'

/** Until then few lines wait for more. */
const latestMs = 1_000
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

/**
 * Lines of a log on their way to a file, or to a pipe. A disk that is full, and a reader that has stopped or gone, cost lines and nothing else.
 * pino's own destination ends the process for the first, or rather hangs in its last flush, and keeps lines without end for the
 * second (sonic-boom 4.2).
 */
export function openLogLines(fd: number, options: QueueOptions): LogLines {
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
function writeAll(fd: number, queue: ReturnType<typeof createQueue>) {
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
