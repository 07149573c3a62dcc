import type { Server } from 'node:http'
import type { Socket } from 'node:net'

/** Told when a connection has requests in work, and when it has none any more. */
export interface Connections {
  begins: (socket: Socket) => void
  ends: (socket: Socket) => void
}

/**
 * Bounds the connections of a server. Beyond that a new one takes the place of that which has been idle for the longest: whoever keeps
 * idle ones, as many as there may be, which costs a request of each in a minute, shuts nobody out. Where all have requests in work the
 * new one is turned away.
 */
export function boundConnections(server: Server, most: number): Connections {
  /** Longest idle first. */
  const idle = new Set<Socket>()
  let open = 0

  server.on('connection', (socket: Socket) => {
    open++
    idle.add(socket)
    socket.once('close', () => {
      open--
      idle.delete(socket)
    })
    if (open <= most) return
    const [longest = socket] = idle
    idle.delete(longest)
    longest.destroy()
  })
  return {
    begins: (socket) => void idle.delete(socket),
    ends: (socket) => {
      if (!socket.destroyed) idle.add(socket)
    },
  }
}
