import { findPrograms } from '@app/deploy/servers/find-program.ts'
import { runProgram } from '@app/deploy/processes/run-program.ts'

/**
 * Ways from machines to servers of this host on which packets get lost, the first of a connection among them: then nobody is told
 * that something has ended, as when a host loses its power or a cable is cut. (A proxy takes every connection, and its own kernel answers.)
 */
export interface Wires {
  /** Of each machine: by which `host:port` it reaches each server. */
  ways: Record<string, string>[]
  /** The address of a server, as that machine reaches it. */
  urlFrom: (machine: number, url: string) => string
  /** Nothing passes any more between that machine and any server. */
  cutMachine: (machine: number) => void
  /** Nothing passes any more between any machine and that server. */
  cutServer: (url: string) => void
  /** So many of 100 packets are lost, on all ways and in both directions. */
  lose: (percent: number) => void
  heal: () => void
  close: () => void
}

const table = 'ip messaging-service-wires'
/** Each way has an address of its own in it. */
const ours = '127.77.0.0/16'

/** The address is translated before a packet leaves, so that the server's own one is met; lost is what comes in. */
const ruleset = `
table ${table}
delete table ${table}
table ${table} {
  set cut { type ipv4_addr; }
  chain translate { type nat hook output priority -100; ip daddr ${ours} dnat to 127.0.0.1; }
  chain cuts { type filter hook input priority 0; ct original ip daddr @cut drop; }
  chain losses { type filter hook input priority 1; }
}
`

/**
 * Servers at 127.0.0.1. Undefined where we may not: as others than root, without `nft` (apt-get install nftables), on other systems than
 * Linux.
 */
export function stretchWires(machines: number, servers: string[]): Wires | undefined {
  const [nft] = findPrograms(['nft'])
  const tell = (input: string) => nft !== undefined && runProgram(nft, ['-f', '-'], { input }).status === 0
  const surely = (input: string) => {
    if (!tell(input)) throw new Error(`nft refuses: ${input}`)
  }
  if (!tell(ruleset)) return undefined
  const numbers = Array.from({ length: machines }, (_, machine) => machine)
  const addressOf = (machine: number, server: number) => `127.77.${machine + 1}.${server + 1}`
  const placeOf = (url: string) => new URL(url).host
  const cut = (addresses: string[]) => surely(`add element ${table} cut { ${addresses.join(', ')} }`)
  return {
    ways: numbers.map((machine) =>
      Object.fromEntries(
        servers.map((url, server) => [placeOf(url), `${addressOf(machine, server)}:${new URL(url).port}`]),
      ),
    ),
    urlFrom: (machine, url) => url.replace('127.0.0.1', addressOf(machine, servers.indexOf(url))),
    cutMachine: (machine) => cut(servers.map((_, server) => addressOf(machine, server))),
    cutServer: (url) => cut(numbers.map((machine) => addressOf(machine, servers.indexOf(url)))),
    lose: (percent) =>
      surely(`add rule ${table} losses ct original ip daddr ${ours} numgen random mod 100 < ${percent} drop`),
    heal: () => surely(`flush set ${table} cut\nflush chain ${table} losses`),
    close: () => surely(`delete table ${table}`),
  }
}
