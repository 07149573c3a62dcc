import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { once } from 'node:events'

export interface Proxy {
  /** The address of what is behind it, with the proxy's port. */
  url: string
  /** From now on each piece of data waits that long, in both directions. */
  delay: (ms: number) => void
  /** Nothing passes any more, and nobody is told; what was sent meanwhile passes after `heal`. */
  swallow: () => void
  /** Every connection is reset; new ones are let through. */
  reset: () => void
  /** Every connection is ended in order, as a server ends its sessions; new ones are let through. */
  end: () => void
  /** New connections, too, are reset, until `heal`. */
  refuse: () => void
  heal: () => void
  close: () => void
}

interface Trouble {
  delayMs: number
  isSwallowing: boolean
  isRefusing: boolean
}

/** A TCP proxy on a free port of the loopback address, through which the network can be broken. */
export async function startProxy(target: string): Promise<Proxy> {
  const { hostname, port } = new URL(target)
  const trouble: Trouble = { delayMs: 0, isSwallowing: false, isRefusing: false }
  const pipes = new Set<Pipe>()
  const server = createServer({ noDelay: true, allowHalfOpen: true }, (near) => {
    if (trouble.isRefusing) return void near.resetAndDestroy()
    const far = connect({ host: hostname, port: Number(port), noDelay: true, allowHalfOpen: true })
    const both = [createPipe(near, far, trouble), createPipe(far, near, trouble)]
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
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = new URL(target)
  url.host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  const resetAll = () => [...pipes].forEach(({ reset }) => reset())
  return {
    // `URL` adds a slash to what is no web address.
    url: target.endsWith('/') ? url.href : url.href.replace(/\/$/, ''),
    delay: (ms) => void (trouble.delayMs = ms),
    swallow: () => void (trouble.isSwallowing = true),
    reset: resetAll,
    end: () => [...pipes].forEach(({ end }) => end()),
    refuse() {
      trouble.isRefusing = true
      resetAll()
    },
    heal() {
      Object.assign(trouble, { delayMs: 0, isSwallowing: false, isRefusing: false })
      for (const { flow } of pipes) flow()
    },
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
function createPipe(from: Socket, to: Socket, trouble: Trouble): Pipe {
  const waiting: Array<{ piece: Buffer | null; dueAt: number }> = []
  let timer: NodeJS.Timeout | undefined

  function flow() {
    clearTimeout(timer)
    while (!trouble.isSwallowing && !to.destroyed) {
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
