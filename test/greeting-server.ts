import { createServer, type Socket } from 'node:net'
import { listen } from './listen.ts'

export interface GreetingServer {
  /** `host:port`. */
  address: string
  /** How many have come. */
  comers: () => number
  close: () => void
}

const frame = (type: string, body: Buffer) => {
  const length = Buffer.alloc(4)
  length.writeInt32BE(body.length + 4)
  return Buffer.concat([Buffer.from(type), length, body])
}
const parameter = (name: string, value: string) => frame('S', Buffer.from(`${name}\0${value}\0`))

/** What a standby says to who logs in: anybody may, it is in recovery, and it is ready. */
const greeting = Buffer.concat([
  frame('R', Buffer.alloc(4)),
  parameter('in_hot_standby', 'on'),
  parameter('default_transaction_read_only', 'off'),
  frame('Z', Buffer.from('I')),
])

/** Stands for a Postgres that is a standby, or for a proxy that has no server behind it and ends each connection. */
export async function startGreetingServer(kind: 'standby' | 'ending'): Promise<GreetingServer> {
  const sockets = new Set<Socket>()
  let comers = 0
  const server = createServer((socket) => {
    comers++
    sockets.add(socket)
    socket.on('error', () => {})
    if (kind === 'ending') return void socket.end()
    socket.once('data', () => socket.write(greeting))
  })
  return {
    address: `127.0.0.1:${await listen(server)}`,
    comers: () => comers,
    close() {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}
