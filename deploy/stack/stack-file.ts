import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import type { BusPlace } from './bus.ts'
import type { Servers } from '../servers/start-servers.ts'
import type { Demo } from './demo.ts'
import { readJson, writeJson } from './json-file.ts'
import type { RunningInstance } from './start-services.ts'

/** Everything that one needs to use a running stack. It is there from the moment at which the stack is ready until it stops. */
export interface RunningStack {
  publicUrl: string
  simulatorUrl: string
  servers: Servers
  bus: BusPlace
  demo: Demo
  services: RunningInstance[]
}

const fileOf = (dataDir: string) => join(dataDir, 'stack.json')

export function writeStackFile(dataDir: string, stack: RunningStack) {
  const { publicUrl, simulatorUrl, servers, bus, demo, services } = stack
  const instances = services.map(({ service, process, url, publicUrl: gatewayUrl }) => ({
    service,
    instance: { pid: process.pid() ?? null, url, ...(gatewayUrl !== undefined && { public_url: gatewayUrl }) },
  }))
  const byName = Map.groupBy(instances, ({ service }) => service)
  writeJson(fileOf(dataDir), {
    base_url: `${publicUrl}/v1`,
    api_key: demo.api_key,
    organization_id: demo.organization_id,
    phone_number_id: demo.phone_number_id,
    demo_contact: demo.contact,
    simulator_url: simulatorUrl,
    postgres_url: servers.postgresUrl,
    redis_url: servers.redisUrl,
    nats_url: bus.natsUrl,
    // Of the operator, who may do what an administrator does, and not what a service does.
    nats_nkey_seed: bus.natsSeed ?? null,
    services: Object.fromEntries([...byName].map(([name, all]) => [name, all.map(({ instance }) => instance)])),
    servers: Object.fromEntries(servers.processes.map((server) => [server.name, { pid: server.pid() ?? null }])),
  })
}

/** After a restart, which a full disk does not undo: then the file says what it said, and what is new at the next one. */
export function rewriteStackFile(dataDir: string, stack: RunningStack): void {
  try {
    writeStackFile(dataDir, stack)
  } catch {
    // All but the id of a process is as it was.
  }
}

export function removeStackFile(dataDir: string): void {
  rmSync(fileOf(dataDir), { force: true })
}

/** Where the stack of this data folder has its bus; undefined when none runs. */
export function readBusPlace(dataDir: string): BusPlace | undefined {
  const { data } = busPart.safeParse(readJson(fileOf(dataDir)))
  return data && busPlaceOf(data)
}

const busPart = z.object({ nats_url: z.string(), nats_nkey_seed: z.string().nullable() })

/** Where the bus is, as the file says. */
export const busPlaceOf = ({ nats_url: natsUrl, nats_nkey_seed: seed }: z.infer<typeof busPart>): BusPlace => ({
  natsUrl,
  natsSeed: seed ?? undefined,
})
