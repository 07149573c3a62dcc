import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect, createServer as createTcpServer } from 'node:net'
import { startReceiver } from '../journeys/receiver.ts'
import { startSimulator } from '../simulator/simulator.ts'

/**
 * What is outside of an installation, as the main program of a container beside it: on port 8090 the platform's simulator, on 9000
 * a subscriber, and on 9001 what that one got.
 */
const { UPSTREAM_APP_ID = '', UPSTREAM_APP_SECRET = '', UPSTREAM_VERIFY_TOKEN = '', CALLBACK_URL = '' } = process.env

const simulator = await startSimulator({
  appId: UPSTREAM_APP_ID,
  appSecret: UPSTREAM_APP_SECRET,
  verifyToken: UPSTREAM_VERIFY_TOKEN,
  callbackUrl: CALLBACK_URL,
})
const receiver = await startReceiver()
const memory = createServer((_request, response) => response.end(JSON.stringify(receiver.deliveries)))

await Promise.all([
  openToAll(8090, simulator.url),
  openToAll(9000, receiver.url),
  once(memory.listen(9001, '0.0.0.0'), 'listening'),
])
console.log('ready')
process.on('SIGTERM', () => process.exit())

/** What listens on the loopback address of a container is not reached by others. */
async function openToAll(port: number, target: string) {
  const { hostname, port: targetPort } = new URL(target)
  const server = createTcpServer((near) => {
    const far = connect({ host: hostname, port: Number(targetPort) })
    near.pipe(far).pipe(near)
    near.on('error', () => far.destroy())
    far.on('error', () => near.destroy())
  })
  await once(server.listen(port, '0.0.0.0'), 'listening')
}
