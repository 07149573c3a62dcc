import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Servers } from '@app/deploy/servers/start-servers.ts'
import { startPrivateServers } from '../servers.ts'
import { stopChildren } from './child.ts'
import type { Options } from './options.ts'
import { makeFixture, type Fixture } from './project/fixture.ts'
import { openProject, type Project } from './project/project.ts'
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
  /** Postgres and Redis of the floors' own, set as the project's are. */
  floorServers: () => Promise<Servers>
  /** Ends all that was started. The folder, which holds the logs, is kept on request. */
  stop: (how?: { keepFolder: boolean }) => Promise<void>
  isStopping: () => boolean
}

export function openBench(options: Options): Bench {
  const folder = temporaryFolder()
  let stopping = false
  const project = once(() => openProject(folder, options))
  const fixture = once(async () => makeFixture(await project.get(), options))
  const floorServers = once(() => startPrivateServers(join(folder, 'floors'), ['postgres', 'redis']))
  return {
    options,
    folder,
    say: (line) => console.log(line),
    project: project.get,
    fixture: fixture.get,
    floorServers: floorServers.get,
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
