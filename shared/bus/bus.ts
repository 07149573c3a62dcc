import { type ConnectionOptions, ErrorCode, Events, type NatsConnection } from 'nats'
import type { Logger } from 'pino'
import { connectFirst, sayWhileWaiting } from './first-connection.ts'
import { inboxOf } from './inbox.ts'
import { authenticatorOf } from './login.ts'
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
  ...(nkeySeed !== undefined && { authenticator: authenticatorOf(nkeySeed) }),
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
  const all = { ...usual, ...options }
  const nc = await connectFirst(url, all, log)
  const fault = faultOf(nc)
  if (fault !== null) throw new Error(fault)
  const { request, cut, resume } = createRequests(nc, identity.inboxPrefix)
  let connected = true
  const tasks: Array<() => void> = []
  let stopWaiting = () => {}
  function wait(stop: () => void) {
    connected = false
    cut()
    stopWaiting()
    stopWaiting = stop
  }
  function goOn() {
    stopWaiting()
    connected = true
    resume()
    for (const task of tasks) task()
  }
  void (async () => {
    for await (const { type, data } of nc.status()) {
      if (type === Events.Disconnect || type === Events.Reconnect) log.warn({ event: type }, 'bus')
      const lack = type === Events.Reconnect ? faultOf(nc) : connected && isRefusal(type, data) ? refused : null
      if (type === Events.Disconnect) wait(sayWhileWaiting(url, all, log))
      else if (lack !== null) wait(leave(nc, lack, log))
      else if (type === Events.Reconnect) goOn()
    }
    stopWaiting()
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

/**
 * One that has as many subscriptions as it may, or as the account may, refuses the next, and goes on: what they would hear is heard by
 * nobody. What else it refuses so, but by permissions, ends the connection.
 */
const isRefusal = (type: string, data: unknown) => type === Events.Error && data === ErrorCode.ProtocolError
const refused =
  'nats-server refuses what we ask of it, such as more subscriptions than it allows: its own log says what'

/** A server tells what it takes as it is connected to, and not when that is mended. Answers how to stay. */
function leave(nc: NatsConnection, fault: string, log: Logger): () => void {
  log.error({ server: nc.getServer() }, `${fault}; it is left for another, or tried again`)
  const timer = setTimeout(() => void nc.reconnect().catch(() => {}), leaveAfterMs).unref()
  return () => clearTimeout(timer)
}
