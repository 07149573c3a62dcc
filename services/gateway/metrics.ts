import { Counter, Gauge, type Registry } from 'prom-client'
import type { InFlight } from './limits/in-flight.ts'

/** Answers under /v1 by their status. */
export type Answers = Map<number, number>

/** What Prometheus reads of a gateway. Numbers are taken when it asks: a labelled counter costs more than an answer's log. */
export function exposeMetrics(metrics: Registry, answers: Answers, inFlight: InFlight): void {
  const registers = [metrics]
  new Counter({
    name: 'gateway_answers_total',
    help: 'Answers under /v1 by status.',
    labelNames: ['status'],
    registers,
    collect() {
      this.reset()
      for (const [status, count] of answers) this.inc({ status }, count)
    },
  })
  new Gauge({
    name: 'gateway_requests_in_flight',
    help: 'Requests that wait for a service.',
    registers,
    collect() {
      this.set(inFlight.count)
    },
  })
  new Gauge({
    name: 'gateway_body_bytes_in_flight',
    help: 'Bytes of request bodies in memory.',
    registers,
    collect() {
      this.set(inFlight.bytes)
    },
  })
}
