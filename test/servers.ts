import type { ServerName } from '@app/deploy/servers/kind.ts'
import { startServers } from '@app/deploy/servers/start-servers.ts'

/**
 * Starts servers for this run of the tests alone. Addresses in the environment are not used: tests make and drop
 * databases, change the passwords of roles, and expect an empty event stream.
 */
export function startPrivateServers(dataDir: string, only?: ServerName[], { isDurable = true } = {}) {
  for (const variable of ['DATABASE_URL', 'REDIS_URL', 'NATS_URL']) delete process.env[variable]
  return startServers({ dataDir, log: () => {}, only, temporary: true, isDurable })
}
