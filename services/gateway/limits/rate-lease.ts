import { createHash } from 'node:crypto'
import { inTime } from '@app/shared/work/overdue.ts'
import { Redis } from 'ioredis'
import type { Logger } from 'pino'
import { z } from 'zod'

/** Tokens that Redis charged to a budget and this process may spend. */
interface Lease {
  tokens: number
  /** When the shared budget would be whole again, from the moment of the charge on. */
  wholeInMs: number
}

/** What all gateways share. Both throw when it is slow or away. */
export interface SharedBudgets {
  lease: (name: string, perMinute: number, wanted: number) => Promise<Lease>
  ping: () => Promise<unknown>
}

/**
 * GCRA on Redis's own clock: a budget is the one moment at which it is whole again (`tat`), at most a minute away. Takes
 * a tenth of what is left, or what is wanted at once when that is more, so that a busy budget costs few calls. A moment
 * further away is of a clock that was ahead of this one.
 */
const script = `
local time = redis.call('time')
local now = time[1] * 1000000 + time[2]
local interval = 60000000 / tonumber(ARGV[1])
local stored = tonumber(redis.call('get', KEYS[1]) or now)
local tat = math.min(math.max(stored, now), now + 60000000)
local left = math.floor((now + 60000000 - tat) / interval + 0.000001)
local tokens = math.min(left, math.max(1, tonumber(ARGV[2]), math.floor(left / 10)))
tat = tat + tokens * interval
if tokens > 0 or tat < stored then
  redis.call('set', KEYS[1], string.format('%.3f', tat), 'px', math.ceil((tat - now) / 1000))
end
return { tokens, math.floor(tat - now) }
`
const sha = createHash('sha1').update(script).digest('hex')

/**
 * Checked before it is used: the driver takes an address of any scheme, stays in database 0 where it cannot read which one is meant, and
 * throws at a password that is not encoded.
 */
export const redisUrl = z
  .string()
  .refine(
    isRedisUrl,
    'must look like redis://:password@127.0.0.1:6379, or rediss://… with TLS; in the password, percent-encode all but letters and digits',
  )

function isRedisUrl(url: string) {
  if (!url.includes('://')) return true
  try {
    const { protocol, pathname, username, password } = new URL(url)
    for (const text of [username, password]) decodeURIComponent(text)
    return /^rediss?:$/.test(protocol) && /^(\/\d*)?$/.test(pathname)
  } catch {
    return false
  }
}

/** A Redis with what its last try to connect ended in; undefined while it is connected. */
interface WatchedRedis extends Redis {
  refusal?: Error | undefined
}

/** A connection that says nothing for so long is given up: it has died without a word. */
const silentMs = 5_000

/** Nothing waits for a connection, and nothing is sent twice. */
export function connectRedis(url: string, log: Logger, socketTimeout = silentMs): WatchedRedis {
  const redis: WatchedRedis = new Redis(url, {
    connectionName: 'gateway',
    enableOfflineQueue: false,
    // It asks for INFO, which not every user may, and says so beside the log. One that still loads its data refuses leases by itself.
    enableReadyCheck: false,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    connectTimeout: 2_000,
    socketTimeout,
    // After a failover the address leads to the new primary; this connection, to the old one, may live on.
    reconnectOnError: ({ message }) => message.startsWith('READONLY'),
    retryStrategy: (attempt) => Math.min(attempt * 100, 1_000),
  })
  // The rate limiter tells once when it goes on alone, and why; there are up to ten attempts to connect a second.
  redis.on('error', (err) => {
    redis.refusal = err
    log.debug({ err }, 'redis')
  })
  redis.on('ready', () => (redis.refusal = undefined))
  return redis
}

/** Not the driver's `commandTimeout`: it gives up, when this process was busy, what Redis has answered long ago. */
const answerWithinMs = 50

export const budgetsIn = (redis: WatchedRedis, withinMs = answerWithinMs): SharedBudgets => ({
  async lease(name, perMinute, wanted) {
    const asked = redis.evalsha(sha, 1, name, perMinute, wanted).catch((err: unknown) => {
      // Of a connection that is not there the driver says no more than that nothing can be written to it.
      if (redis.refusal) throw redis.refusal
      if (!(err instanceof Error && err.message.startsWith('NOSCRIPT'))) throw err
      return redis.eval(script, 1, name, perMinute, wanted)
    })
    const [tokens, wholeInMicroseconds] = (await inTime(asked, withinMs)) as [number, number]
    return { tokens, wholeInMs: wholeInMicroseconds / 1000 }
  },
  ping: () => inTime(redis.ping(), withinMs),
})
