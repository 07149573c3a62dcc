import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The services that own a Postgres schema of their name. */
export const dataServices = ['messaging', 'directory', 'platform', 'webhooks'] as const
export type DataServiceName = (typeof dataServices)[number]

export interface Migration {
  /** Where it comes from and its file, such as `kit/001-outbox.sql`. */
  name: string
  checksum: string
  sql: string
}

/** The migrations of one schema, in the order in which they are applied. */
export interface SchemaMigrations {
  schema: DataServiceName | 'idempotency'
  migrations: Migration[]
}

/** Everything that there is to apply: the schema `idempotency`, then in each service's schema the kit's tables and its own. */
export function readMigrations(root: string): SchemaMigrations[] {
  const kit = readFolder('kit', join(root, 'shared/migrations'))
  const shared = { schema: 'idempotency' as const, folder: join(root, 'shared/migrations-idempotency') }
  return [
    { schema: shared.schema, migrations: readFolder(shared.schema, shared.folder) },
    ...dataServices.map((schema) => ({
      schema,
      migrations: [...kit, ...readFolder(schema, join(root, 'services', schema, 'migrations'))],
    })),
  ]
}

function readFolder(source: string, folder: string): Migration[] {
  if (!existsSync(folder)) return []
  const files = readdirSync(folder)
    .filter((file) => file.endsWith('.sql'))
    .toSorted()
  const numbers = files.map((file) => numberOf(folder, file))
  const twice = files.find((_, n) => numbers[n] === numbers[n - 1])
  if (twice !== undefined) throw new Error(`${join(folder, twice)}: another migration has the same number.`)
  return files.map((file) => {
    // A checkout on Windows has other line ends, and is the same migration.
    const sql = readFileSync(join(folder, file), 'utf8').replaceAll('\r\n', '\n')
    return { name: `${source}/${file}`, checksum: createHash('sha256').update(sql).digest('hex'), sql }
  })
}

function numberOf(folder: string, file: string) {
  const [, number] = /^(\d{3})-[a-z0-9-]+\.sql$/.exec(file) ?? []
  if (number === undefined) throw new Error(`${join(folder, file)}: a migration is named like 001-what-it-does.sql.`)
  return number
}
