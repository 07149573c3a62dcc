import type { Socket } from 'node:net'

export type Held = ReturnType<typeof createHeld>

/** Connections that are kept waiting on purpose: they drop when their time comes, or when the simulator stops. */
export function createHeld() {
  const sockets = new Map<Socket, NodeJS.Timeout>()

  function delay(socket: Socket, ms: number, then: () => void) {
    const timer = setTimeout(() => {
      sockets.delete(socket)
      then()
    }, ms)
    sockets.set(socket, timer)
  }

  return {
    delay,
    hold: (socket: Socket, ms: number) => delay(socket, ms, () => socket.destroy()),
    stop: () => {
      for (const [socket, timer] of sockets) {
        clearTimeout(timer)
        socket.destroy()
      }
    },
  }
}
