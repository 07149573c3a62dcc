import type { ServerName } from '@app/deploy/servers/kind.ts'
import { nats } from '@app/deploy/servers/nats.ts'
import { redis } from '@app/deploy/servers/redis.ts'
import { startServers } from '@app/deploy/servers/start-servers.ts'

/** Whether this machine has that server as a program, whose process and files a test can touch; else a container runs it. */
export const isProgram = (name: 'nats' | 'redis'): boolean => ({ nats, redis })[name].find('') !== undefined

/**
 * Starts servers for this run of the tests alone. Addresses in the environment are not used: tests make and drop
 * databases, change the passwords of roles, and expect an empty event stream.
 */
export function startPrivateServers(dataDir: string, only?: ServerName[], { isDurable = true } = {}) {
  for (const variable of ['DATABASE_URL', 'REDIS_URL', 'NATS_URL']) delete process.env[variable]
  return startServers({ dataDir, log: () => {}, only, temporary: true, isDurable })
}
