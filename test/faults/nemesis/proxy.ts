import { connect, createServer, type Socket } from 'node:net'
import { listen } from '../../listen.ts'

export interface Proxy {
  /** The address of what is behind it, with the proxy's port. */
  url: string
  /** From now on each piece of data waits that long, in both directions. */
  delay: (ms: number) => void
  /** Nothing passes any more (or nothing in one direction), and nobody is told; what was sent meanwhile passes after `heal`. */
  swallow: (direction?: Direction) => void
  /** Every connection is reset; new ones are let through. */
  reset: () => void
  /** Every connection is ended in order, as a server ends its sessions; new ones are let through. */
  end: () => void
  /** New connections, too, are reset, until `heal`. */
  refuse: () => void
  heal: () => void
  /** New connections go to the server of this address; those that are there stay where they are. */
  leadTo: (url: string) => void
  close: () => void
}

/** To what is behind the proxy, or from there. */
type Direction = 'there' | 'back'

interface Trouble {
  delayMs: number
  swallowed: Direction[]
  isRefusing: boolean
}

/** A TCP proxy on a port of the loopback address, a free one unless it is given, through which the network can be broken. */
export async function startProxy(target: string, port?: number): Promise<Proxy> {
  let place = new URL(target)
  const trouble: Trouble = { delayMs: 0, swallowed: [], isRefusing: false }
  const pipes = new Set<Pipe>()
  const server = createServer({ noDelay: true, allowHalfOpen: true }, (near) => {
    if (trouble.isRefusing) return void near.resetAndDestroy()
    const far = connect({ host: place.hostname, port: Number(place.port), noDelay: true, allowHalfOpen: true })
    const both = [createPipe(near, far, trouble, 'there'), createPipe(far, near, trouble, 'back')]
    for (const pipe of both) pipes.add(pipe)
    const end = () => {
      near.destroy()
      far.destroy()
      for (const pipe of both) pipes.delete(pipe)
    }
    // Whoever dies takes the other along, as a kernel would: with a reset.
    for (const socket of [near, far]) {
      socket.on('error', () => (socket === near ? far : near).resetAndDestroy())
      socket.on('close', end)
    }
  })
  const url = new URL(target)
  url.host = `127.0.0.1:${await listen(server, port)}`
  const resetAll = () => [...pipes].forEach(({ reset }) => reset())
  return {
    // `URL` adds a slash to what is no web address.
    url: target.endsWith('/') ? url.href : url.href.replace(/\/$/, ''),
    delay: (ms) => void (trouble.delayMs = ms),
    swallow: (direction) => void (trouble.swallowed = direction ? [direction] : ['there', 'back']),
    reset: resetAll,
    end: () => [...pipes].forEach(({ end }) => end()),
    refuse() {
      trouble.isRefusing = true
      resetAll()
    },
    heal() {
      Object.assign(trouble, { delayMs: 0, swallowed: [], isRefusing: false })
      for (const { flow } of pipes) flow()
    },
    leadTo: (url) => void (place = new URL(url)),
    close() {
      server.close()
      resetAll()
    },
  }
}

interface Pipe {
  flow: () => void
  reset: () => void
  end: () => void
}

/** Carries one direction; every piece leaves after the one before it, however the delay changes. */
function createPipe(from: Socket, to: Socket, trouble: Trouble, direction: Direction): Pipe {
  const waiting: Array<{ piece: Buffer | null; dueAt: number }> = []
  let timer: NodeJS.Timeout | undefined

  function flow() {
    clearTimeout(timer)
    while (!trouble.swallowed.includes(direction) && !to.destroyed) {
      const [first] = waiting
      if (!first) return
      const waitMs = Math.min(first.dueAt - performance.now(), trouble.delayMs)
      if (waitMs > 0) return void (timer = setTimeout(flow, Math.ceil(waitMs)))
      waiting.shift()
      if (first.piece === null) to.end()
      else to.write(first.piece)
    }
  }

  const take = (piece: Buffer | null) => {
    waiting.push({ piece, dueAt: performance.now() + trouble.delayMs })
    if (waiting.length === 1) flow()
  }
  from.on('data', (piece: Buffer) => take(piece))
  from.on('end', () => take(null))
  from.on('close', () => clearTimeout(timer))
  return { flow, reset: () => from.resetAndDestroy(), end: () => void from.end() }
}
