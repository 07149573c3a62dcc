import { connect, type ConnectionOptions, type NatsConnection } from 'nats'
import type { Logger } from 'pino'

const sayEveryMs = 5_000

/** Servers are told by the address, and their passwords are nobody's who reads it. */
export const withoutPasswords = (natsUrl: string) => natsUrl.replaceAll(/[^/,]*@/g, '')

/** Waits for the first server as long as it takes, and says for which and why. */
export async function connectFirst(natsUrl: string, options: ConnectionOptions, log: Logger): Promise<NatsConnection> {
  const all = { servers: natsUrl.split(','), ...options }
  // Without `waitOnFirstConnect` the client forgets servers that are down now, and with it, it tells nobody why it waits.
  const saying = setInterval(() => {
    connect({ ...all, reconnect: false }).then(
      (nc) => nc.close(),
      (err: unknown) => log.warn({ err, servers: withoutPasswords(natsUrl) }, 'waiting for nats-server'),
    )
  }, sayEveryMs)
  try {
    return await connect({ ...all, waitOnFirstConnect: true })
  } finally {
    clearInterval(saying)
  }
}
