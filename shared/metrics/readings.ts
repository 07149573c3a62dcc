import { Gauge, type Registry } from 'prom-client'
import { inTime } from '../work/overdue.ts'
import { counts, registered } from './registered.ts'

/** A value of a gauge. */
export interface Reading {
  gauge: string
  labels?: Record<string, string>
  value: number
}

/** Gauges that are read together: name, then what it means and its labels. */
export type Gauges = Record<string, { help: string; labelNames?: string[] }>

type Read = () => Promise<Reading[]>

/** However often Prometheus and others ask, a source is asked this often. */
const everyMs = 10_000
/** A scrape does not wait longer for a source; what it has not said is then absent. */
const waitMs = 2_000

/** Gauges whose values somebody else has (Postgres, NATS): read when Prometheus asks, at most every 10 s, absent while it is away. */
export function readings(registry: Registry, source: string, gauges: Gauges, read: Read): void {
  const failures = counts(registry, {
    name: 'svc_readings_failed_total',
    help: 'Times that the values of gauges could not be read, by source.',
    labelNames: ['source'],
  })
  const latest = atMostEvery(() =>
    inTime(read(), waitMs).catch((): Reading[] => {
      failures.inc({ source })
      return []
    }),
  )
  for (const [name, described] of Object.entries(gauges)) sourcesOf(registry, name, described).push(latest)
}

/** Several sources may give values of one gauge: two mailboxes, say. */
const sourcesOf = (registry: Registry, name: string, described: Gauges[string]) =>
  registered(registry, name, () => {
    const sources: Read[] = []
    const gauge = new Gauge({
      name,
      ...described,
      registers: [registry],
      async collect() {
        const all = await Promise.all(sources.map((source) => source()))
        clear()
        for (const { gauge: of, labels, value } of all.flat()) if (of === name) gauge.set(labels ?? {}, value)
      },
    })
    // Without labels `reset` means 0, and absent is meant.
    const clear = () => (described.labelNames ? gauge.reset() : gauge.remove())
    return sources
  })

function atMostEvery(read: Read): Read {
  let readAt = -Infinity
  let latest: Promise<Reading[]> = Promise.resolve([])
  return () => {
    const now = performance.now()
    if (now - readAt < everyMs) return latest
    readAt = now
    latest = read()
    return latest
  }
}
