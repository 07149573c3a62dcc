import type { Servers } from '@app/deploy/servers/start-servers.ts'
import type { Roots } from '../processes.ts'

/** The floors' own Postgres, for what it costs. */
export const postgresOf = ({ processes }: Servers): Roots => ({
  postgres: processes.flatMap((server) => (server.name === 'postgres' ? (server.pid() ?? []) : [])),
})
