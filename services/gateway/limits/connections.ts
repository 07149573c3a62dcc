import type { Server } from 'node:http'
import type { Socket } from 'node:net'

/** Told when a connection has requests, and when it has none any more. */
export interface Connections {
  /** `isInWork`: whether one of them is worked on, and so waits for us and not for its client. */
  begins: (socket: Socket, isInWork: () => boolean) => void
  ends: (socket: Socket) => void
}

interface Standing {
  isInWork: () => boolean
  /** Bytes that had gone either way when it took its place. */
  moved: number
}

const idle = () => false

/** Connections that are looked at for a new one, in some 0.2 ms. The next one looks at those behind them. */
const mostLooks = 200

/**
 * Bounds the connections of a server. Beyond that a new one takes the place of that which has waited for its client for the longest: for a
 * request, for the rest of a body, or until an answer is read. Whoever keeps such ones, as many as there may be, which costs a request of
 * each in a minute, shuts nobody out. One that something came or went on meanwhile, such as a long file, goes behind the others once
 * more. Where a request of each that is looked at is worked on the new one is turned away.
 */
export function boundConnections(server: Server, most: number): Connections {
  /** Who is to give way first, first. */
  const open = new Map<Socket, Standing>()

  function stand(socket: Socket, isInWork: () => boolean) {
    open.delete(socket)
    open.set(socket, { isInWork, moved: movedOn(socket) })
  }

  /** The newest one, when none of those that were looked at gives way. */
  function endOne(newest: Socket) {
    let left = mostLooks
    for (const [socket, { isInWork, moved }] of open) {
      if (socket === newest || left-- === 0) break
      if (!isInWork() && movedOn(socket) === moved) return end(socket)
      stand(socket, isInWork)
    }
    end(newest)
  }

  function end(socket: Socket) {
    open.delete(socket)
    socket.destroy()
  }

  server.on('connection', (socket: Socket) => {
    stand(socket, idle)
    socket.once('close', () => open.delete(socket))
    if (open.size > most) endOne(socket)
  })
  return {
    begins: (socket, isInWork) => stand(socket, isInWork),
    ends: (socket) => {
      if (!socket.destroyed) stand(socket, idle)
    },
  }
}

const movedOn = ({ bytesRead, bytesWritten }: Socket) => bytesRead + bytesWritten
