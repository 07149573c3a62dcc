import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Servers } from '@app/deploy/servers/start-servers.ts'
import { startPrivateServers } from '../servers.ts'
import { stopChildren } from './child.ts'
import type { Options } from './options.ts'
import { makeFixture, type Fixture } from './project/fixture.ts'
import { openProject, type Project } from './project/project.ts'
import { readStatements, watchStatements } from './project/statements.ts'
import { openPlans, type WatchPlans } from './project/watch-plans.ts'
import type { Statement } from './statements.ts'
import { temporaryFolder } from './temporary-folder.ts'

/** What a measurement may use; each part is started when it is first asked for. */
export interface Bench {
  options: Options
  /** Deleted after the run. */
  folder: string
  say: (line: string) => void
  project: () => Promise<Project>
  /** Numbers and contacts to send to. */
  fixture: () => Promise<Fixture>
  /** Postgres, Redis and nats-server of the floors' own, set as the project's are. */
  floorServers: () => Promise<Servers>
  /** What each SQL statement has cost so far; none unless it was asked for, and the server can tell. */
  statements: () => Promise<Statement[]>
  /** Tells the plans of statements as they ran; undefined where the server cannot. The project is started anew for it. */
  plans: () => Promise<WatchPlans | undefined>
  /** Ends all that was started. The folder, which holds the logs, is kept on request. */
  stop: (how?: { keepFolder: boolean }) => Promise<void>
  isStopping: () => boolean
}

export function openBench(options: Options): Bench {
  const folder = temporaryFolder()
  let stopping = false
  let isWatched = false
  const project = once(async () => {
    const opened = await openProject(folder, options)
    if (options.statements) isWatched = await watchStatements(opened)
    return opened
  })
  const fixture = once(async () => makeFixture(await project.get(), options))
  const plans = once(async () => openPlans(await project.get()))
  const floorServers = once(() => startPrivateServers(join(folder, 'floors'), ['postgres', 'redis', 'nats']))
  return {
    options,
    folder,
    say: (line) => console.log(line),
    project: project.get,
    fixture: fixture.get,
    floorServers: floorServers.get,
    async statements() {
      const { sql } = await project.get()
      return isWatched ? readStatements(sql()) : []
    },
    plans: plans.get,
    isStopping: () => stopping,
    async stop({ keepFolder } = { keepFolder: false }) {
      stopping = true
      await stopChildren()
      await (await project.made())?.stop()
      await (await floorServers.made())?.stop()
      if (!keepFolder) await rm(folder, { recursive: true, force: true })
    },
  }
}

/** Made when it is first asked for. */
function once<T>(make: () => Promise<T>) {
  let made: Promise<T> | undefined
  return {
    get: () => (made ??= make()),
    /** Undefined when it was never asked for, or could not be made. */
    made: async () => made?.catch(() => undefined),
  }
}
