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
  /** Nothing passes any more between that machine and any server. This, and what follows, answers what undoes it. */
  cutMachine: (machine: number) => () => void
  /** Nothing passes any more between any machine and that server. */
  cutServer: (url: string) => () => void
  /** So many of 100 packets are lost, on all ways and in both directions. */
  lose: (percent: number) => () => void
  /** Nothing passes any more over the connections that are there; new ones are made. For ever, as when what stands between forgets them. */
  forget: () => void
  /** Undoes all that can be undone. */
  heal: () => void
  close: () => void
}

const table = 'ip messaging-service-wires'
/** Each way has an address of its own in it. */
const ours = '127.77.0.0/16'
const onWires = `ct original ip daddr ${ours}`

/** The address is translated before a packet leaves, so that the server's own one is met; lost is what comes in. */
const ruleset = `
table ${table}
delete table ${table}
table ${table} {
  set cut { type ipv4_addr; }
  chain translate { type nat hook output priority -100; ip daddr ${ours} dnat to 127.0.0.1; }
  chain cuts { type filter hook input priority 0; ct original ip daddr @cut drop; }
  chain losses { type filter hook input priority 1; }
  chain ages { type filter hook output priority 0; }
  chain forgotten { type filter hook input priority 2; }
}
`

/**
 * Servers at 127.0.0.1. Undefined where we may not: as others than root, without `nft` (apt-get install nftables), on other systems than
 * Linux.
 */
export function stretchWires(machines: number, servers: string[]): Wires | undefined {
  const [nft] = findPrograms(['nft'])
  const tell = (input: string) => nft !== undefined && runProgram(nft, ['-f', '-'], { input }).status === 0
  if (!tell(ruleset)) return undefined
  const cuts = new Set<{ addresses: string[] }>()
  const losses = new Set<{ percent: number }>()
  let age = 0

  function surely(input: string) {
    if (!tell(input)) throw new Error(`nft refuses: ${input}`)
  }
  function apply() {
    const cut = new Set([...cuts].flatMap(({ addresses }) => addresses))
    surely(
      [
        `flush set ${table} cut`,
        `flush chain ${table} losses`,
        ...[...cut].map((address) => `add element ${table} cut { ${address} }`),
        ...[...losses].map(
          ({ percent }) => `add rule ${table} losses ${onWires} numgen random mod 100 < ${percent} drop`,
        ),
      ].join('\n'),
    )
  }
  function harm<T>(among: Set<T>, one: T) {
    among.add(one)
    apply()
    return () => {
      among.delete(one)
      apply()
    }
  }

  const numbers = Array.from({ length: machines }, (_, machine) => machine)
  const addressOf = (machine: number, server: number) => `127.77.${machine + 1}.${server + 1}`
  const urlFrom = (machine: number, url: string) => url.replace('127.0.0.1', addressOf(machine, servers.indexOf(url)))
  const waysOf = (machine: number) =>
    Object.fromEntries(servers.map((url) => [new URL(url).host, new URL(urlFrom(machine, url)).host]))
  return {
    ways: numbers.map(waysOf),
    urlFrom,
    cutMachine: (machine) => harm(cuts, { addresses: servers.map((_, server) => addressOf(machine, server)) }),
    cutServer: (url) => harm(cuts, { addresses: numbers.map((machine) => addressOf(machine, servers.indexOf(url))) }),
    lose: (percent) => harm(losses, { percent }),
    forget() {
      age++
      surely(`
        flush chain ${table} ages
        flush chain ${table} forgotten
        add rule ${table} ages ${onWires} ct state new ct mark set ${age}
        add rule ${table} forgotten ${onWires} ct mark != ${age} drop
      `)
    },
    heal() {
      cuts.clear()
      losses.clear()
      apply()
    },
    close: () => surely(`delete table ${table}`),
  }
}
