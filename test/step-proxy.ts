import type { Socket } from 'node:net'
import { startTcpProxy } from './tcp-proxy.ts'

export interface Cut {
  /** The step of the count at which the connection is lost, from 1. */
  at: number
  /** Before: Postgres never sees the step, what it saw of it is rolled back. After: it has done it, and its answer is lost. */
  when: 'before' | 'after'
  /** Once more, so many steps behind it. */
  again?: number
}

interface Counted {
  steps: () => number
  /** Resolves when the connection is lost for the first time. */
  lost: Promise<void>
  /** How often the cut was met, once the connections of those are lost. */
  losses: () => Promise<number>
}

export interface StepProxy {
  /** The address of Postgres, with the proxy's port. */
  url: string
  /** Counts from 0 again; with a cut, the connection of that step is reset. */
  count: (cut?: Cut) => Counted
  /** Resets all connections, whatever step they are in; Postgres goes on with what it has. */
  reset: () => void
  close: () => void
}

interface Count {
  steps: number
  cut: Cut | undefined
  /** One for each time that the cut was met: resolves when the connection is lost. */
  losses: PromiseWithResolvers<void>[]
  tell: () => void
}

/**
 * A proxy that reads what passes to Postgres, and counts its steps: a statement with all that belongs to it, a `begin`, a
 * `commit`. So a test can break off a flow at each of them, one after the other, and not only where chance falls.
 * The frames: https://www.postgresql.org/docs/current/protocol-message-formats.html.
 */
export async function startStepProxy(target: string): Promise<StepProxy> {
  let current: Count = { steps: 0, cut: undefined, losses: [], tell: () => {} }
  const { port, nears, close } = await startTcpProxy(target, (near, far) => carry(near, far, () => current))
  const url = new URL(target)
  url.host = `127.0.0.1:${port}`
  return {
    url: url.href,
    count(cut) {
      const { promise: lost, resolve: tell } = Promise.withResolvers<void>()
      const count: Count = { steps: 0, cut, losses: [], tell }
      current = count
      return {
        steps: () => count.steps,
        lost,
        losses: async () => (await Promise.all(count.losses.map(({ promise }) => promise))).length,
      }
    },
    reset() {
      for (const near of nears) near.resetAndDestroy()
    },
    close,
  }
}

const isCut = ({ at, again = 0 }: Cut, step: number) => step === at || step === at + again

/** Counts a step; what resolves its loss, where it is the one that is cut. */
function countStep(count: Count): (() => void) | undefined {
  count.steps += 1
  if (!count.cut || !isCut(count.cut, count.steps)) return undefined
  const loss = Promise.withResolvers<void>()
  count.losses.push(loss)
  return () => {
    loss.resolve()
    count.tell()
  }
}

/** One session, until its step is cut. */
function carry(near: Socket, far: Socket, current: () => Count) {
  const asked = createFrames(true)
  const answered = createFrames(false)
  // What is held back until the step is whole: a `commit` is done before its Sync comes.
  let held: Buffer[] = []
  let isLogin = false
  let open = 0
  // How many answers may still pass, once the session is to be lost after a step.
  let left = Infinity
  let tell = () => {}
  const lose = () => {
    tell()
    near.resetAndDestroy()
    far.resetAndDestroy()
  }
  near.on('data', (bytes: Buffer) => {
    for (const frame of asked(bytes)) {
      if (left !== Infinity) return
      isLogin ||= frame.includes(typesOfDriver)
      if (endsStep(frame) && isLogin) {
        isLogin = false
        open += 1
      } else if (endsStep(frame)) {
        const count = current()
        const told = countStep(count)
        if (told) {
          tell = told
          if (count.cut?.when === 'before') return lose()
          left = open
        }
        open += 1
      }
      held.push(frame)
      if (isPiece(frame)) continue
      far.write(Buffer.concat(held))
      held = []
    }
  })
  far.on('data', (bytes: Buffer) => {
    for (const frame of answered(bytes)) {
      if (left === 0) {
        if (frame[0] !== readyForQuery) continue
        return lose()
      }
      if (frame[0] === readyForQuery && open > 0) {
        open -= 1
        left -= 1
      }
      near.write(frame)
    }
  })
  for (const [socket, other] of [
    [near, far],
    [far, near],
  ] as const) {
    socket.on('error', () => other.resetAndDestroy())
    socket.on('end', () => other.end())
    socket.on('close', () => {
      // Also where it ends in another way, with the answer still under way.
      tell()
      other.destroy()
    })
  }
}

const [query, sync, readyForQuery] = ['Q', 'S', 'Z'].map((letter) => letter.charCodeAt(0))
const endsStep = (frame: Buffer) => frame[0] === query || frame[0] === sync
/** What the driver asks for after each login, and nobody awaits: no step of a flow. */
const typesOfDriver = 'select b.oid, b.typarray'
/** Parse, Bind, Describe, Execute, Close: nothing is answered before a Sync or a Flush. */
const pieces = new Set(['P', 'B', 'D', 'E', 'C'].map((letter) => letter.charCodeAt(0)))
const isPiece = (frame: Buffer) => pieces.has(frame[0] ?? 0)

/** Cuts a stream of bytes into whole frames; the first of a client has no letter. */
function createFrames(isClient: boolean) {
  let rest = Buffer.alloc(0)
  let isFirst = isClient
  return (bytes: Buffer) => {
    rest = Buffer.concat([rest, bytes])
    const frames: Buffer[] = []
    while (true) {
      const start = isFirst ? 0 : 1
      if (rest.length < start + 4) return frames
      const length = start + rest.readUInt32BE(start)
      if (rest.length < length) return frames
      frames.push(rest.subarray(0, length))
      rest = rest.subarray(length)
      isFirst = false
    }
  }
}
