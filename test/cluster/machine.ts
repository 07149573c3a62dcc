import { openSync } from 'node:fs'
import { join } from 'node:path'

// Loaded before a service: it takes the next free machine, and reaches the servers through the proxies of that one.

/** Of each machine: by which port it reaches what listens at another one. */
const machines: Record<string, number>[] = JSON.parse(process.env['MACHINE_PORTS'] ?? '[]')
const folder = process.env['MACHINE_FOLDER'] ?? ''
const service = /services\/([a-z]+)\/main\.ts$/.exec(process.argv[1] ?? '')?.[1]

function isFree(machine: number) {
  try {
    openSync(join(folder, `${service}-${machine}`), 'wx')
    return true
  } catch {
    return false
  }
}

const ports = service === undefined ? undefined : machines.find((_, machine) => isFree(machine))
if (ports) {
  for (const name of ['DATABASE_URL', 'REDIS_URL', 'NATS_URL']) {
    const urls = process.env[name]
    if (urls) process.env[name] = urls.replaceAll(/:(\d+)/g, (all, port: string) => `:${ports[port] ?? all.slice(1)}`)
  }
}
