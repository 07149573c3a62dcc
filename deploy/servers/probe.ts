import { connect } from 'node:net'

const timeoutMs = 5_000

/**
 * The first bytes that a server says on a new connection, after it was sent the greeting.
 * Rejects with what the network says when nobody listens there.
 */
export function firstWords(url: string, defaultPort: number, greeting = ''): Promise<string> {
  const { hostname, port } = new URL(url)
  const host = hostname.replace(/^\[|\]$/g, '')
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port: port === '' ? defaultPort : Number(port), timeout: timeoutMs })
    const end = (settle: () => void) => {
      socket.destroy()
      settle()
    }
    socket.once('connect', () => socket.write(greeting))
    socket.once('data', (data) => end(() => resolve(data.toString())))
    socket.once('error', (err) => end(() => reject(err)))
    socket.once('close', () => reject(new Error('the connection was closed')))
    socket.once('timeout', () => end(() => reject(new Error(`no answer within ${timeoutMs} ms`))))
  })
}
