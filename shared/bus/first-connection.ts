import { connect, type ConnectionOptions, type NatsConnection } from 'nats'
import type { Logger } from 'pino'

const sayEveryMs = 5_000

/** Servers are told by the address, and their passwords are nobody's who reads it. */
export const withoutPasswords = (natsUrl: string) => natsUrl.replaceAll(/(?<=^|,|:\/\/)(?!\w+:\/\/)[^,]*@/g, '')

const withServers = (natsUrl: string, options: ConnectionOptions) => ({ servers: natsUrl.split(','), ...options })

/** Waits for the first server as long as it takes, and says for which and why. */
export async function connectFirst(natsUrl: string, options: ConnectionOptions, log: Logger): Promise<NatsConnection> {
  const stopSaying = sayWhileWaiting(natsUrl, options, log)
  try {
    // Without it the client forgets servers that are down now.
    return await connect({ ...withServers(natsUrl, options), waitOnFirstConnect: true })
  } finally {
    stopSaying()
  }
}

/**
 * Says for which servers somebody waits and why, which the client tells nobody: a try of its own finds it out. A reason is said once
 * until another one comes. Answers how to stop.
 */
export function sayWhileWaiting(natsUrl: string, options: ConnectionOptions, log: Logger): () => void {
  let isWaiting = true
  let said = ''
  const say = (err: unknown) => {
    if (!isWaiting || said === String(err)) return
    said = String(err)
    log.warn({ err, servers: withoutPasswords(natsUrl) }, 'waiting for nats-server')
  }
  const timer = setInterval(() => {
    connect({ ...withServers(natsUrl, options), reconnect: false }).then((nc) => nc.close(), say)
  }, sayEveryMs)
  timer.unref()
  return () => {
    isWaiting = false
    clearInterval(timer)
  }
}
