import { clusterNames } from '@app/deploy/nats/nats-servers.ts'
import { type Proxy, startProxy } from '../faults/nemesis/proxy.ts'

type NatsName = (typeof clusterNames)[number]

interface Line {
  from: NatsName
  to: NatsName
  proxy: Proxy
}

/** Three machines, each with a nats-server and an instance of each service, and what lies between them. */
export function createNetwork() {
  /** From each nats-server to each other one, as it dials it. */
  const routes: Line[] = []
  /** Those of the services of a machine to the servers that are not on it. */
  const outward = new Map<number, Proxy[]>()
  const all: Proxy[] = []

  async function newProxy(url: string) {
    const proxy = await startProxy(url)
    all.push(proxy)
    return proxy
  }

  const touching = (name: NatsName) => routes.filter(({ from, to }) => from === name || to === name)

  return {
    routeOf: async (from: string, to: string, url: string) => {
      const proxy = await newProxy(url)
      routes.push({ from: from as NatsName, to: to as NatsName, proxy })
      return proxy.url
    },
    /** For each machine, by which `host:port` its services reach what listens at another one. */
    async waysOf(natsUrls: string[], otherUrls: string[]): Promise<Record<string, string>[]> {
      const ofMachine = async (machine: number) => {
        const lines = await Promise.all(
          [...natsUrls, ...otherUrls].map(async (url) => ({ url, proxy: await newProxy(url) })),
        )
        outward.set(
          machine,
          lines.filter(({ url }) => url !== natsUrls[machine]).map(({ proxy }) => proxy),
        )
        return Object.fromEntries(lines.map(({ url, proxy }) => [new URL(url).host, new URL(proxy.url).host]))
      }
      return Promise.all(clusterNames.map((_, machine) => ofMachine(machine)))
    },
    /** Nothing passes between this nats-server and the others, and nobody is told. */
    cutOff: (name: NatsName) => touching(name).forEach(({ proxy }) => proxy.swallow()),
    /** The same, with connections that are reset. */
    refuse: (name: NatsName) => touching(name).forEach(({ proxy }) => proxy.refuse()),
    /** The others hear nothing of it, and it hears all of them. */
    mute: (name: NatsName) =>
      touching(name).forEach(({ from, proxy }) => proxy.swallow(from === name ? 'there' : 'back')),
    slow: (ms: number) => routes.forEach(({ proxy }) => proxy.delay(ms)),
    scatter: () => routes.forEach(({ proxy }) => proxy.swallow()),
    /** A machine whole: its nats-server from the others, its services from all that is elsewhere. */
    cutOffMachine(name: NatsName) {
      for (const { proxy } of touching(name)) proxy.swallow()
      for (const proxy of outward.get(clusterNames.indexOf(name)) ?? []) proxy.swallow()
    },
    heal: () => all.forEach(({ heal }) => heal()),
    close: () => all.forEach(({ close }) => close()),
  }
}

export type Network = ReturnType<typeof createNetwork>
