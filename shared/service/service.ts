import type { NatsConnection } from 'nats'
import type { Logger } from 'pino'
import type { Bus } from '../bus/bus.ts'
import type { Sql } from '../database/database.ts'
import type { Probes } from './probes.ts'
import type { Tracer } from './tracing.ts'

export type ServiceName = 'gateway' | 'messaging' | 'directory' | 'platform' | 'webhooks'

/** What every service has. */
export interface Service extends Bus {
  name: ServiceName
  log: Logger
  nc: NatsConnection
  probes: Probes
  /** Undefined unless traces are wanted. */
  tracer?: Tracer | undefined
  /** Copies of the event stream in a cluster of nats-servers. */
  streamReplicas: number
}

/** A service that owns a Postgres schema of its name. */
export interface DataService extends Service {
  sql: Sql
  /**
   * A connection of their own for the events that it publishes and consumes. A nats-server of 2.9 whose disk was full reads no
   * more of what comes from a connection that has asked JetStream something: questions and answers must not wait behind it.
   */
  eventBus: Bus
}
