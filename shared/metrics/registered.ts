import { Counter, Gauge, Histogram, type Registry } from 'prom-client'

interface Described {
  /** By Prometheus' convention: a unit, and `_total` for what is counted. */
  name: string
  help: string
  /** Their values come from closed lists (a route, a subject, a word of a table): never an id. */
  labelNames?: string[]
}

/** From a row in memory to the longest that a client waits, in seconds. */
export const buckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 25]

const made = new WeakMap<Registry, Map<string, unknown>>()

/** One metric of a name in each registry, made by whoever asks first: its series come from several places. */
export function registered<T>(registry: Registry, name: string, make: () => T): T {
  const known = made.get(registry) ?? new Map<string, unknown>()
  made.set(registry, known)
  if (!known.has(name)) known.set(name, make())
  return known.get(name) as T
}

/** How long something took, in seconds: 0.3 µs an observation. */
export const durations = (registry: Registry, described: Described): Histogram =>
  registered(registry, described.name, () => new Histogram({ ...described, buckets, registers: [registry] }))

/** How often something happened: 0.15 µs a count. `from`: series that are there before their first count, so that it is seen as one. */
export function counts(registry: Registry, { from = [], ...described }: Described & { from?: string[][] }): Counter {
  return registered(registry, described.name, () => {
    const counter = new Counter({ ...described, registers: [registry] })
    for (const values of from) counter.labels(...values).inc(0)
    return counter
  })
}

/** What stands in this process, read when Prometheus asks. */
export function gauge(registry: Registry, described: Described, read: () => number | Promise<number>): void {
  registered(
    registry,
    described.name,
    () =>
      new Gauge({
        ...described,
        registers: [registry],
        async collect() {
          this.set(await read())
        },
      }),
  )
}
