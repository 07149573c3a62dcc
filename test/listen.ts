import { once } from 'node:events'
import type { AddressInfo, Server } from 'node:net'

/** Listens on a port of the loopback address, a free one unless it is given; answers which. */
export async function listen(server: Server, on = 0): Promise<number> {
  server.listen(on, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}
