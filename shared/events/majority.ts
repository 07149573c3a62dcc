import { connect, type ConnectionOptions, type NatsConnection, NatsError, type StreamInfo } from 'nats'
import type { Logger } from 'pino'
import { streamName } from './stream.ts'

/** A copy that the leader has heard of this lately has elected nobody else: a nats-server waits for 4 s before it does. */
const heardWithinNs = 3e9
const lookEveryMs = 2_000
const answerWithinMs = 1_000
/** Looks in vain, one after the other, before another server is looked for: an election takes as long. */
const vainLooks = 3

/**
 * Whether the leader that tells this of the stream has most copies behind it. One that was cut off from them takes itself for the
 * leader for up to 20 s, and tells of a stream that stands still, while the others have elected another one.
 */
export function isVouchedFor({ cluster }: Pick<StreamInfo, 'cluster'>): boolean {
  const others = cluster?.replicas ?? []
  const heard = others.filter(({ active }) => active > 0 && active < heardWithinNs).length
  return (heard + 1) * 2 > others.length + 1
}

/**
 * Leaves a nats-server of a cluster that is cut off from most of the others, when another one is not: connected with it alone, a
 * service would be found by nobody, or find nobody, for as long as that lasts. While no server has a majority it stays.
 */
export function stayWithMajority(nc: NatsConnection, urls: string[], options: ConnectionOptions, log: Logger): void {
  let vain = 0
  let server = nc.getServer()
  let isLooking = false

  async function look() {
    // Another one has as many looks: those of before say nothing of it.
    if (nc.getServer() !== server) vain = 0
    server = nc.getServer()
    vain = (await hasMajority(nc)) ? 0 : vain + 1
    if (vain < vainLooks || nc.isClosed() || nc.isDraining()) return
    const others = urls.filter((url) => !url.endsWith(server))
    if (!(await Promise.all(others.map((url) => isBetter(url, options)))).includes(true)) return
    log.warn({ server }, 'this nats-server is cut off from the others: another one is taken')
    // The client may begin with the same server; then the next look goes on.
    await nc.reconnect().catch(() => {})
  }

  const timer = setInterval(() => {
    if (isLooking) return
    isLooking = true
    void look().finally(() => (isLooking = false))
  }, lookEveryMs)
  timer.unref()
  void nc.closed().then(() => clearInterval(timer))
}

async function hasMajority(nc: NatsConnection): Promise<boolean> {
  try {
    const answer = await nc.request(`$JS.API.STREAM.INFO.${streamName}`, '', { timeout: answerWithinMs })
    const info = answer.json<Partial<StreamInfo>>()
    return info.config !== undefined && isVouchedFor(info as StreamInfo)
  } catch (err) {
    // With a users.conf from before this release a service may not ask, and stays where it is.
    return err instanceof NatsError && err.isPermissionError()
  }
}

async function isBetter(url: string, options: ConnectionOptions): Promise<boolean> {
  try {
    const nc = await connect({ ...options, servers: url, timeout: answerWithinMs, reconnect: false })
    const has = await hasMajority(nc)
    await nc.close()
    return has
  } catch {
    return false
  }
}
