import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/**
 * Bounds the connections of a server. Beyond that a new one takes the place of that which has been idle for the longest: whoever keeps
 * idle ones, as many as there may be, which costs a request of each in a minute, shuts nobody out. Where all have requests in work the
 * new one is turned away.
 */
export function boundConnections(server: Server, most: number): void {
  /** Longest idle first. */
  const idle = new Set<Socket>()
  const inWork = new Map<Socket, number>()

  server.on('connection', (socket: Socket) => {
    idle.add(socket)
    socket.once('close', () => {
      idle.delete(socket)
      inWork.delete(socket)
    })
    if (idle.size + inWork.size <= most) return
    const [longest = socket] = idle
    idle.delete(longest)
    longest.destroy()
  })
  server.prependListener('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    idle.delete(socket)
    inWork.set(socket, (inWork.get(socket) ?? 0) + 1)
    response.once('close', () => {
      const left = (inWork.get(socket) ?? 1) - 1
      if (left > 0) return void inWork.set(socket, left)
      inWork.delete(socket)
      if (!socket.destroyed) idle.add(socket)
    })
  })
}
