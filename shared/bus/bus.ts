import { type ConnectionOptions, Events, type NatsConnection, nkeyAuthenticator } from 'nats'
import type { Logger } from 'pino'
import { connectFirst } from './first-connection.ts'
import { inboxOf } from './inbox.ts'
import { createRequests, type Request } from './requests.ts'

/** What the answers and callbacks of the largest kind need (3 MB callbacks, pages of 100 maximal messages). */
const maxPayloadBytes = 8 * 1024 * 1024
/**
 * A server that is frozen, or cut off without a word, is given up when it has left two of these unanswered: after 4 to 6 s.
 * Until then whoever asks waits.
 */
const pingIntervalMs = 2_000
/**
 * A connection that is not made by then is given up, and another tried. The client does not notice one that ends between its
 * first byte and its last word (nats 2.29), and by itself would wait 20 s for it.
 */
export const connectWithinMs = 4_000

/** How long a server that takes too little is stayed with, unused. */
const leaveAfterMs = 2_000

export interface Bus {
  nc: NatsConnection
  request: Request
  /** False while disconnected, or connected to a server that takes too little: what is published then would be dropped. */
  isConnected: () => boolean
  /** Runs the task after every reconnection. */
  onReconnect: (task: () => void) => void
}

/** What a user of the bus proves itself by, and where its answers come. */
export const identityOf = (name: string, nkeySeed: string | undefined) => ({
  name,
  inboxPrefix: inboxOf(name),
  ...(nkeySeed !== undefined && { authenticator: nkeyAuthenticator(Buffer.from(nkeySeed)) }),
})

/** Connects for ever: waits for the first server, reconnects to any. The process ends when the connection is closed for good. */
export async function connectBus(
  name: string,
  url: string,
  log: Logger,
  { nkeySeed, ...options }: ConnectionOptions & { nkeySeed?: string | undefined } = {},
): Promise<Bus> {
  const identity = identityOf(name, nkeySeed)
  const usual = {
    ...identity,
    maxReconnectAttempts: -1,
    reconnectTimeWait: 200,
    reconnectJitter: 100,
    pingInterval: pingIntervalMs,
    timeout: connectWithinMs,
    noAsyncTraces: true,
  }
  const nc = await connectFirst(url, { ...usual, ...options }, log)
  const fault = faultOf(nc)
  if (fault !== null) throw new Error(fault)
  const { request, cut, resume } = createRequests(nc, identity.inboxPrefix)
  let connected = true
  const tasks: Array<() => void> = []
  void (async () => {
    for await (const { type } of nc.status()) {
      if (type === Events.Disconnect) {
        connected = false
        cut()
      }
      if (type === Events.Disconnect || type === Events.Reconnect) log.warn({ event: type }, 'bus')
      if (type !== Events.Reconnect || leavesIfFaulty(nc, log)) continue
      connected = true
      resume()
      for (const task of tasks) task()
    }
  })()
  return {
    nc,
    request,
    isConnected: () => connected && !nc.isClosed() && !nc.isDraining(),
    onReconnect: (task) => void tasks.push(task),
  }
}

/** What the server that it is connected to lacks; null: nothing. */
export function faultOf({ info }: NatsConnection): string | null {
  const { max_payload: payload } = info ?? { max_payload: 0 }
  if (payload >= maxPayloadBytes) return null
  return `nats-server allows ${payload} bytes a message: set max_payload to ${maxPayloadBytes} or more`
}

/** A server tells what it takes as it is connected to, and not when that is mended. */
function leavesIfFaulty(nc: NatsConnection, log: Logger): boolean {
  const fault = faultOf(nc)
  if (fault === null) return false
  log.error({ server: nc.getServer() }, `${fault}; it is left for another, or tried again`)
  setTimeout(() => void nc.reconnect().catch(() => {}), leaveAfterMs).unref()
  return true
}
