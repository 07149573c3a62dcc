import { randomBytes } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { z } from 'zod'
import { runProgram } from '../processes/run-program.ts'
import { readJson, writeJson } from '../stack/json-file.ts'
import { type Account, canEnter, postgresAccount } from './account.ts'

// Where the data is, when the user that Postgres runs as cannot reach the data folder.
const elsewhere = '/var/lib/messaging-service'

const remembered = z.object({
  password: z.string(),
  /** Set when the data is outside the data folder. */
  home: z.string().optional(),
})

export interface PostgresData {
  /** The folder of the database cluster, and beside it that of its socket. */
  home: string
  cluster: string
  isElsewhere: boolean
  password: string
  /** Whom the server runs as; undefined for ourselves. */
  account: Account | undefined
}

/** Where this data folder's Postgres keeps its data and how to log in, decided once and remembered in `postgres.json`. */
export function locateData(dataDir: string): PostgresData {
  const file = join(dataDir, 'postgres.json')
  const written = readJson(file)
  const known = written === undefined ? decide(dataDir) : remembered.parse(written)
  if (written === undefined) writeJson(file, known)
  const home = known.home ?? join(dataDir, 'postgres')
  const cluster = join(home, 'data')
  const data = { home, cluster, isElsewhere: known.home !== undefined, password: known.password }
  return { ...data, account: postgresAccount(cluster) }
}

/** Where a program and a container have their data. `postgres` itself may be there before, as a disk of its own. */
export const dataFolders = ['postgres/data', 'postgres-container']

function decide(dataDir: string): z.infer<typeof remembered> {
  if (dataFolders.some((name) => existsSync(join(dataDir, name)))) {
    throw new Error(
      `postgres.json is missing in ${dataDir}, and with it the password of its database. ` +
        'Put the file back, or remove the folder to begin anew.',
    )
  }
  const password = randomBytes(18).toString('base64url')
  if (canEnter(dataDir, postgresAccount(dataDir))) return { password }
  makePassable(elsewhere)
  const home = mkdtempSync(join(elsewhere, 'postgres-'))
  makePassable(home)
  return { password, home }
}

/** For the user that Postgres runs as, whatever the umask. */
function makePassable(folder: string) {
  mkdirSync(folder, { recursive: true })
  chmodSync(folder, 0o711)
}

/** The version that made the data, such as `15`; undefined when there is none yet. */
export function versionOfData({ cluster }: PostgresData): string | undefined {
  const file = join(cluster, 'PG_VERSION')
  return existsSync(file) ? readFileSync(file, 'utf8').trim() : undefined
}

/** Text in UTF-8, sorted by bytes, so that ids sort by their time. */
const byBytes = ['--encoding=UTF8', '--locale=C']
/** And with the upper and lower case of all letters: `C` alone knows those of ASCII. */
export const locale = [...byBytes, '--lc-ctype=C.UTF-8']

/** Makes an empty cluster, whole or not at all. */
export function initialize(data: PostgresData, postgres: string): void {
  const { cluster, account, password } = data
  const unfinished = `${cluster}.new`
  const passwordFile = `${cluster}.password`
  makePassable(dirname(cluster))
  rmSync(unfinished, { recursive: true, force: true })
  mkdirSync(unfinished, { mode: 0o700 })
  writeFileSync(passwordFile, password, { mode: 0o600 })
  if (account) for (const path of [unfinished, passwordFile]) chownSync(path, account.uid, account.gid)

  const login = ['--username=postgres', `--pwfile=${passwordFile}`, '--auth=scram-sha-256']
  const make = (locale: string[]) =>
    runProgram(join(dirname(postgres), 'initdb'), [`--pgdata=${unfinished}`, ...locale, ...login], {
      cwd: dirname(cluster),
      ...account,
    })
  const made = make(locale)
  // An older system may not have it.
  const initdb = made.status === 0 ? made : make(byBytes)
  rmSync(passwordFile)
  if (initdb.status !== 0) {
    throw new Error(`initdb could not make a database in ${unfinished}:\n${initdb.error?.message ?? initdb.stderr}`)
  }
  renameSync(unfinished, cluster)
}
