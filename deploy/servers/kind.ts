import type { Supervised, Watcher } from '../processes/supervise.ts'

export type ServerName = 'postgres' | 'redis' | 'nats'

/** A server that answers. */
export interface Running {
  url: string
  /** For the progress, such as `Postgres 15 on port 20123`. */
  what: string
  /** The process, when it is ours. */
  process?: Supervised | undefined
  stop: () => Promise<void>
  /** Deletes what it keeps outside the data folder; only after `stop`. */
  removeData?: (() => void) | undefined
}

export interface Place {
  dataDir: string
  watcher: Watcher
  /** The users of a nats-server that we start, as its configuration names them; without it everybody may do everything. */
  natsAuthorization?: string | undefined
  /** Whether what was committed outlives the machine's end; so it is unless told otherwise. */
  isDurable?: boolean | undefined
}

/** What there is to know of one of the servers that the stack needs. */
export interface ServerKind {
  name: ServerName
  title: string
  /** The variable that names one that runs already. */
  variable: 'DATABASE_URL' | 'REDIS_URL' | 'NATS_URL'
  packages: { debian: string; homebrew: string }
  /** Resolves when the server behind a given address answers and is fit; rejects with a sentence. */
  check: (url: string) => Promise<void>
  /** The program on this machine, if it is there and fit for the data. */
  find: (dataDir: string) => string | undefined
  startProgram: (program: string, place: Place) => Promise<Running>
  startContainer: (place: Place) => Promise<Running>
}
