import { type IncomingHttpHeaders, request } from 'node:http'
import { connect, type Socket } from 'node:net'

interface RawAnswer {
  status: number
  headers: IncomingHttpHeaders
  text: string
}

interface Options {
  method: string
  /** With `/v1`. */
  path: string
  /** As they are written, one after the other, doubles too. */
  headers?: string[]
  /** The address that the client has, of 127.0.0.0/8: limits are counted by it. */
  from?: string
}

/** One request on a connection of its own, with headers that no library would send. */
export function rawRequest(origin: string, { method, path, headers = [], from }: Options): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    const asked = request(
      origin + path,
      {
        method,
        headers: ['Host', new URL(origin).host, ...headers],
        agent: false,
        ...(from && { localAddress: from }),
      },
      (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            text: Buffer.concat(chunks).toString(),
          }),
        )
        response.on('error', reject)
      },
    )
    asked.on('error', reject).end()
  })
}

/** A connection on which bytes are written by hand. */
export function openSocket(origin: string): Promise<Socket> {
  const { hostname, port } = new URL(origin)
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => resolve(socket.off('error', reject)))
    socket.once('error', reject)
  })
}

/** What comes until the peer ends the connection; `null` when it does not within the time. A reset is an end, too. */
export function untilEnd(socket: Socket, withinMs: number): Promise<string | null> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    const timer = setTimeout(() => resolve(null), withinMs)
    socket.on('data', (chunk: Buffer) => chunks.push(chunk))
    socket.on('error', () => {})
    socket.on('close', () => {
      clearTimeout(timer)
      resolve(Buffer.concat(chunks).toString())
    })
  })
}

/** The first answer, in one piece, or nothing when the peer ends the connection without one; `null` when neither comes within the time. */
export function firstAnswer(socket: Socket, withinMs: number): Promise<string | null> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(null), withinMs)
    const settle = (text: string) => {
      clearTimeout(timer)
      socket.destroy()
      resolve(text)
    }
    socket.on('data', (chunk: Buffer) => settle(chunk.toString()))
    socket.on('error', () => {})
    socket.on('close', () => settle(''))
  })
}
