import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { migrate } from '@app/deploy/migrate.ts'
import { type DataServiceName, dataServices } from '@app/deploy/migration-files.ts'
import { roleOf } from '@app/deploy/roles.ts'
import postgres from 'postgres'
import type { TestProject } from 'vitest/node'
import { foreignSettings } from './foreign-settings.ts'
import { makeRunFolder, removeRunFolder } from './run-folder.ts'
import { startPrivateServers } from './servers.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** Logs in as the superuser. */
    postgresUrl: string
    redisUrl: string
    /** Shared by all files of the run; `testService` starts one of its own. */
    natsUrl: string
    /** The database that `createTestDatabase` copies. */
    template: string
    passwords: Record<DataServiceName, string>
    /** A folder that is deleted after the run. */
    runFolder: string
  }
}

const template = 'template_of_tests'

/** Before the first test: the servers, and a migrated database to copy. Answers what undoes it. */
export default async function setup(project: TestProject) {
  const runFolder = await makeRunFolder()
  const servers = await startPrivateServers(join(runFolder, 'servers'), undefined, { isDurable: false })
  async function undo() {
    await servers.stop()
    await removeRunFolder(runFolder)
  }
  // The servers are in process groups of their own: a Ctrl-C does not reach them.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => void undo().finally(() => process.exit(1)))
  }
  try {
    const passwords = passwordsOf()
    await createTemplate(servers.postgresUrl, passwords)
    project.provide('postgresUrl', servers.postgresUrl)
    project.provide('redisUrl', servers.redisUrl)
    project.provide('natsUrl', servers.natsUrl)
    project.provide('template', template)
    project.provide('passwords', passwords)
    project.provide('runFolder', runFolder)
  } catch (err) {
    await undo()
    throw err
  }
  return undo
}

const passwordsOf = () =>
  Object.fromEntries(dataServices.map((service) => [service, randomBytes(12).toString('base64url')])) as Record<
    DataServiceName,
    string
  >

/** As the databases of others sort and compare, when it is named; else by bytes, as those that we make. */
function localeOf(name: string | undefined) {
  if (!name) return ''
  if (!/^[\w-]+$/.test(name)) throw new Error(`TEST_ICU_LOCALE is no locale: ${name}`)
  return `template template0 locale_provider icu icu_locale '${name}'`
}

async function createTemplate(adminUrl: string, passwords: Record<DataServiceName, string>) {
  const sql = postgres(adminUrl, { max: 1 })
  await sql.unsafe(`create database ${template} ${localeOf(process.env['TEST_ICU_LOCALE'])}`)
  const url = new URL(adminUrl)
  url.pathname = `/${template}`
  await migrate(url.href, { passwords })
  for (const role of dataServices.map(roleOf)) {
    for (const [name, value] of Object.entries(foreignSettings)) {
      await sql.unsafe(`alter role ${role} set ${name} = '${value}'`)
    }
  }
  await sql.end()
  await publishChanges(url.href)
}

/** As whoever copies changes out of the database does. */
async function publishChanges(url: string) {
  const sql = postgres(url, { max: 1, onnotice: () => {} })
  await sql`create publication changes for all tables`
  await sql.end()
}
