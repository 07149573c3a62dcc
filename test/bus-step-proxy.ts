import type { Socket } from 'node:net'
import { startTcpProxy } from './tcp-proxy.ts'

/** One frame on its way: out of the client, or in to it. */
export interface BusStep {
  way: 'out' | 'in'
  verb: string
  /** Of a message, or of a subscription. */
  subject: string
  /** A message's headers and its body as they passed. */
  text: string
}

/**
 * What becomes of a step. Before: the connection is lost, and nobody sees the message. After: whom it was for has it, and what
 * follows is lost with the connection. Alone: the message is lost, and the connection stays.
 */
export type Loss = 'before' | 'after' | 'alone'

interface BusLoss {
  /** The step of the count that is lost, from 1. */
  at: number
  loss: Loss
}

export interface BusStepProxy {
  url: string
  /** Counts those messages from 0 again; `lost` resolves when the one that is named is lost. */
  count: (matters: (step: BusStep) => boolean, loss?: BusLoss) => { steps: () => BusStep[]; lost: Promise<void> }
  close: () => void
}

interface Count {
  matters: (step: BusStep) => boolean
  steps: BusStep[]
  loss: BusLoss | undefined
  tell: () => void
}

/**
 * A proxy before nats-server that reads what passes, and counts the messages that a test names. So a flow can lose each of
 * them, one after the other. The frames: https://docs.nats.io/reference/reference-protocols/nats-protocol.
 */
export async function startBusStepProxy(target: string): Promise<BusStepProxy> {
  let current: Count = { matters: () => false, steps: [], loss: undefined, tell: () => {} }
  const { port, close } = await startTcpProxy(target, (near, far) => carry(near, far, () => current))
  return {
    url: `nats://127.0.0.1:${port}`,
    count(matters, loss) {
      const { promise: lost, resolve: tell } = Promise.withResolvers<void>()
      const count: Count = { matters, steps: [], loss, tell }
      current = count
      return { steps: () => count.steps, lost }
    },
    close,
  }
}

const pong = 'PONG\r\n'

/** One connection, until one of its messages is lost with it. */
function carry(near: Socket, far: Socket, current: () => Count) {
  const frames = { out: createFrames(), in: createFrames() }
  let isEnding = false

  function end() {
    near.resetAndDestroy()
    far.resetAndDestroy()
  }

  /** What is to be done with the frame: most pass. */
  function lossOf(way: BusStep['way'], frame: Buffer): Loss | undefined {
    const step = stepOf(way, frame)
    const count = current()
    if (!count.matters(step)) return undefined
    count.steps.push(step)
    if (count.loss?.at !== count.steps.length) return undefined
    count.tell()
    return count.loss.loss
  }

  near.on('data', (bytes: Buffer) => {
    for (const frame of frames.out(bytes)) {
      if (isEnding) return
      const loss = lossOf('out', frame)
      if (loss === 'alone') continue
      if (loss === 'before') return end()
      far.write(frame)
      if (loss === undefined) continue
      // The server has it as soon as it answers what comes behind it.
      isEnding = true
      far.write('PING\r\n')
    }
  })
  far.on('data', (bytes: Buffer) => {
    for (const frame of frames.in(bytes)) {
      if (isEnding) {
        if (frame.toString() === pong) return end()
        continue
      }
      const loss = lossOf('in', frame)
      if (loss === 'alone') continue
      if (loss === 'before') return end()
      if (loss === undefined) near.write(frame)
      else {
        isEnding = true
        near.end(frame)
        return void far.destroy()
      }
    }
  })
  for (const [socket, other] of [
    [near, far],
    [far, near],
  ] as const) {
    socket.on('error', () => other.destroy())
    socket.on('end', () => other.end())
    socket.on('close', () => other.end())
  }
}

const withPayload = new Set(['PUB', 'HPUB', 'MSG', 'HMSG'])

function stepOf(way: BusStep['way'], frame: Buffer): BusStep {
  const end = frame.indexOf('\r\n')
  const [verb = '', subject = ''] = frame.toString('latin1', 0, end).split(' ')
  return { way, verb, subject, text: frame.toString('utf8', end + 2) }
}

/** Cuts a stream of bytes into whole frames: a line, and the payload whose length it says. */
function createFrames() {
  let rest = Buffer.alloc(0)
  return (bytes: Buffer) => {
    rest = Buffer.concat([rest, bytes])
    const frames: Buffer[] = []
    while (true) {
      const end = rest.indexOf('\r\n')
      if (end === -1) return frames
      const words = rest.toString('latin1', 0, end).split(' ')
      const length = end + 2 + (withPayload.has(words[0] ?? '') ? Number(words.at(-1)) + 2 : 0)
      if (rest.length < length) return frames
      frames.push(rest.subarray(0, length))
      rest = rest.subarray(length)
    }
  }
}
