import { connect, createServer, type Socket } from 'node:net'
import { listen } from './listen.ts'

export interface TcpProxy {
  port: number
  /** The sockets of those who are connected with it. */
  nears: ReadonlySet<Socket>
  close: () => void
}

/** Listens on a free port of the loopback address; each connection has one of its own to the target, and `carry` joins the two. */
export async function startTcpProxy(target: string, carry: (near: Socket, far: Socket) => void): Promise<TcpProxy> {
  const { hostname, port } = new URL(target)
  const nears = new Set<Socket>()
  const server = createServer({ noDelay: true }, (near) => {
    const far = connect({ host: hostname, port: Number(port), noDelay: true })
    nears.add(near)
    carry(near, far)
    near.on('close', () => nears.delete(near))
  })
  return {
    port: await listen(server),
    nears,
    close() {
      server.close()
      for (const near of nears) near.destroy()
    },
  }
}
