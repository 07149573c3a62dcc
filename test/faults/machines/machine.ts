import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

// Loaded before a service: it takes the next free machine, and reaches the servers by the ways of that one.

/** Of each machine: by which `host:port` it reaches what others reach at that one. */
const machines: Record<string, string>[] = JSON.parse(process.env['MACHINE_WAYS'] ?? '[]')
const folder = process.env['MACHINE_FOLDER'] ?? ''
const service = /services\/([a-z]+)\/main\.ts$/.exec(process.argv[1] ?? '')?.[1]
/** What an instance keeps when it is started again. */
const instance = process.env['PROBE_PORT'] ?? ''

function isOurs(machine: number) {
  const file = join(folder, `${service}-${machine}`)
  try {
    writeFileSync(file, instance, { flag: 'wx' })
    return true
  } catch {
    return readFileSync(file, 'utf8') === instance
  }
}

const ways = service === undefined ? undefined : machines.find((_, machine) => isOurs(machine))
if (ways) {
  for (const name of ['DATABASE_URL', 'REDIS_URL', 'NATS_URL']) {
    const urls = process.env[name]
    if (urls) process.env[name] = urls.replaceAll(/[\d.]+:\d+/g, (place) => ways[place] ?? place)
  }
}
