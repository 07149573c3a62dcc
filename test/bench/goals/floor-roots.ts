import type { Servers } from '@app/deploy/servers/start-servers.ts'
import type { Roots } from '../processes.ts'

/** The floors' own servers, for what they cost. */
export const floorRoots = ({ processes }: Servers, names: Array<'postgres' | 'nats'>): Roots =>
  Object.fromEntries(
    names.map((name) => [name, processes.flatMap((server) => (server.name === name ? (server.pid() ?? []) : []))]),
  )
